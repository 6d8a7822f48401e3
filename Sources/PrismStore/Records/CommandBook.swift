public import PrismProtocol
import PrismSQLite

/// Writes down what becomes of commands (docs/records.md, "Commands").
struct CommandBook: PlainOperations {
  let transaction: StoreTransaction

  func marks(of namespace: NamespaceName) throws(SQLiteError) -> [RecordID: CommandMark] {
    guard let number = transaction.names.number(of: namespace) else { return [:] }
    let select = try transaction.statement(NameStatement.notesFrom).bind([
      ":namespace": number, ":first": CommandMark.keysBegin, ":end": CommandMark.keysEnd,
    ])
    var marks: [RecordID: CommandMark] = [:]
    for note in try select.records(of: NoteRecord.self) {
      let id = RecordID(String(note.key.dropFirst(CommandMark.keysBegin.count)))
      if let id { marks[id] = CommandMark(note: note.value) }
    }
    return marks
  }

  func write(_ step: CommandStep) throws(SQLiteError) -> CommandStep.Outcome {
    let access = RecordAccess(transaction)
    guard let table = access.table(.command, of: step.namespace),
      let record = try access.record(step.record, in: table), record.isThere,
      step.judged == nil || step.judged == record.fields,
      let fields = try? JSONValue(parsing: record.fields)
    else { return .changed }
    let key = CommandMark.key(step.command)
    let known = try transaction.note(step.namespace, key).map { CommandMark(note: $0) }
    if step.mark != nil, known?.hasBegun == true { return .begunBefore }
    let request = RecordRequest(
      namespace: step.namespace, table: .commands, action: .put(record.id, step.answer.written(into: fields)), bytes: 0)
    guard case .stored = try RecordChanges(transaction).carryOut(request).answer else { return .noRoom }
    if let mark = step.mark {
      try transaction.write(Note(namespace: step.namespace, key: key, value: mark.note))
    }
    if let order = step.order, step.answer.state == .done {
      try ServerTriggers(transaction).take(order, step.namespace)
    }
    return .written
  }

  private static let forgottenKey = "commands.forgotten"

  /// Commands that expire up to this time may have begun and be forgotten: no such command begins. Milliseconds since 1970.
  func forgottenThrough(_ namespace: NamespaceName) throws(SQLiteError) -> Int64 {
    try transaction.note(namespace, Self.forgottenKey).flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0
  }

  func forget(_ commands: [RecordID: CommandMark], of namespace: NamespaceName) throws(SQLiteError) {
    for id in commands.keys {
      try transaction.write(Note(namespace: namespace, key: CommandMark.key(id), value: nil))
    }
    let through = commands.values.reduce(try forgottenThrough(namespace)) { max($0, $1.expires) }
    try transaction.write(Note(namespace: namespace, key: Self.forgottenKey, value: Array("\(through)".utf8)))
  }
}

/// The part of a command that a device remembers until it expires, also if its record is deleted: so a command begins at most
/// once.
public struct CommandMark: Equatable, Sendable {
  /// It was written down as `running`.
  public var hasBegun: Bool
  /// Of the command: milliseconds since 1970. It may be forgotten after that.
  public var expires: Int64
  /// Tells whether the server changed the command since.
  public let digest: Int64

  public init(_ request: CommandRequest, hasBegun: Bool) {
    var sum = RecordChecksum()
    sum.add(request.signedBytes)
    (self.hasBegun, expires, digest) = (hasBegun, request.expires, sum.value)
  }

  /// Whether it is of the same command, not only of the same id.
  public func isOf(_ request: CommandRequest) -> Bool { CommandMark(request, hasBegun: hasBegun) == self }

  static let (keysBegin, keysEnd) = ("command.", "command/")
  static func key(_ id: RecordID) -> String { keysBegin + id.text }

  var note: [UInt8] { Array("\(hasBegun ? "begun" : "seen") \(expires) \(digest)".utf8) }

  /// A mark that can't be read is one of a command that began, and is never forgotten.
  init(note: [UInt8]) {
    let parts = String(decoding: note, as: UTF8.self).split(separator: " ").map(String.init)
    if parts.count == 3, let expires = Int64(parts[1]), let digest = Int64(parts[2]),
      ["begun", "seen"].contains(parts[0])
    {
      (hasBegun, self.expires, self.digest) = (parts[0] == "begun", expires, digest)
    } else {
      (hasBegun, expires, digest) = (true, .max, -1)
    }
  }
}

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
  /// Carried out in the same transaction; nil: the command is another one.
  public var order: TriggerOrder?
  /// The type or pattern of a question that the device's file does not allow: its kept reports count as refused.
  public var refused: ReportType?

  public init(
    namespace: NamespaceName, record: RecordID, command: RecordID, judged: [UInt8]?, answer: CommandAnswer,
    mark: CommandMark?
  ) {
    (self.namespace, self.record, self.command, self.judged) = (namespace, record, command, judged)
    (self.answer, self.mark) = (answer, mark)
  }
}
