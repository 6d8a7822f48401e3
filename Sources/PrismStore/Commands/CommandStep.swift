public import PrismProtocol

/// A step of a command: the device's answer in its record, and the mark that goes with it. Both are one transaction.
public struct CommandStep: Sendable {
  /// The outcome of a step.
  public enum Outcome: Sendable, Equatable {
    case written
    /// The record is not the one that was judged: it was changed or deleted meanwhile.
    case changed
    /// A command of this id began before.
    case begunBefore
    /// The record has no room for an answer.
    case noRoom
  }

  /// The namespace of the table.
  public var namespace: NamespaceName
  /// The record, by its id here.
  public var record: RecordID
  /// The id of the command.
  public var command: RecordID
  /// The fields that were judged; nil: the answer is for whichever fields the record has.
  public var judged: [UInt8]?
  /// The answer that is written into the record.
  public var answer: CommandAnswer
  /// Remembered from now on; nil: what is remembered stays. One that began is never replaced.
  public var mark: CommandMark?

  public init(
    namespace: NamespaceName, record: RecordID, command: RecordID, judged: [UInt8]?, answer: CommandAnswer,
    mark: CommandMark?
  ) {
    (self.namespace, self.record, self.command, self.judged) = (namespace, record, command, judged)
    (self.answer, self.mark) = (answer, mark)
  }
}
