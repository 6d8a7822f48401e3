import PrismSQLite

/// Writes the notes of rings in memory (`MemoryNote`).
struct MemoryNotes: PlainOperations {
  let transaction: StoreTransaction

  /// Writes what the disk does not know. - Parameter namespace: nil: all are meant.
  func write(_ namespace: Int? = nil) throws(SQLiteError) {
    for number in namespace.map({ [$0] }) ?? state.names.namespaces.keys.sorted() where state.usesMemory(number) {
      let queues = QueueID.all(of: number).map(\.inMemory)
      let note = MemoryNote(queues.map { state[$0].ledger }, sequence: queues.map { state[$0].lastSequence }.max() ?? 0)
      guard state.memory.notes[number] != note else { continue }
      state.memory.notes[number] = note
      try transaction.write(note.note, MemoryNote.key, number)
    }
  }

  /// Writes the ledger of a queue in memory, and its note if that is old.
  func write(_ record: LedgerRecord) throws(SQLiteError) {
    try transaction.statement(PacketStatement.writeLedgerInMemory).run(inserting: record)
    let known = state.memory.notes[record.queue.namespace]
    if known.map({ $0.sequenceEnd <= record.lastSequence }) ?? true { try write(record.queue.namespace) }
  }
}
