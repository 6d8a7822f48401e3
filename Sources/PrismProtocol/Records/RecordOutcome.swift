/// The result of a commit for a request about records.
public struct RecordOutcome: Sendable, Equatable {
  /// For the program that asked.
  public var answer: RecordAnswer
  /// A change waits for the server now.
  public var hasChanged: Bool
  public init(_ answer: RecordAnswer, hasChanged: Bool = false) {
    (self.answer, self.hasChanged) = (answer, hasChanged)
  }
}
