import PrismProtocol
import PrismSQLite

/// Writes down what becomes of commands (docs/records.md, "Commands").
struct CommandBook: StoreOperations {
  let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  func marks(of namespace: NamespaceName) throws(SQLiteError) -> [RecordID: CommandMark] {
    guard let number = transaction.names.number(of: namespace) else { return [:] }
    let select = try transaction.statement(.names(.notesFrom)).bind([
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
    return .written
  }

  func forget(_ commands: [RecordID], of namespace: NamespaceName) throws(SQLiteError) {
    for id in commands {
      try transaction.write(Note(namespace: namespace, key: CommandMark.key(id), value: nil))
    }
  }
}
