import PrismProtocol

// Small values that are kept for a namespace.
extension ReportStore {
  /// nil: there is none.
  public func note(_ namespace: NamespaceName, _ key: String) throws(StoreError) -> [UInt8]? {
    guard let number = state.number(of: namespace) else { return nil }
    return try reading { (database) throws(SQLiteError) in try note(number, key, database) }
  }

  /// What the last run left of every namespace that ever stored something.
  public func remains() throws(StoreError) -> [NamespaceName: NamespaceRemains] {
    try reading { (database) throws(SQLiteError) in
      var notes: [Int: [String: [UInt8]]] = [:]
      try database.connection.prepare("SELECT namespace, key, value FROM notes").forEachRow { row in
        notes[row.int(0), default: [:]][row.text(1)] = row.bytes(2)
      }
      var remains: [NamespaceName: NamespaceRemains] = [:]
      for (number, name) in state.namespaces {
        let hasReports = ReportKind.allCases.contains { kind in
          let ledger = state[QueueID(namespace: number, kind: kind)].ledger
          return ledger[.waiting] + ledger[.claimed] > 0
        }
        remains[name] = NamespaceRemains(notes: notes[number] ?? [:], hasReports: hasReports)
      }
      return remains
    }
  }

  func note(_ namespace: Int, _ key: String, _ database: StoreDatabase) throws(SQLiteError) -> [UInt8]? {
    let read = try database.statement(.readNote)
    read.bind(1, namespace)
    read.bind(2, key)
    defer { read.reset() }
    return try read.step() ? read.bytes(0) : nil
  }

  func write(_ note: Note, _ database: StoreDatabase) throws(SQLiteError) {
    let number = try number(of: note.namespace, database)
    let statement = try database.statement(note.value == nil ? .deleteNote : .writeNote)
    statement.bind(1, number)
    statement.bind(2, note.key)
    if let value = note.value { statement.bind(3, value) }
    try statement.run()
  }
}
