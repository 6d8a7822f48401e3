import PrismProtocol

// Small values that are kept for a namespace.
extension ReportStore {
  /// nil: there is none.
  public func note(_ namespace: NamespaceName, _ key: String) throws(StoreError) -> [UInt8]? {
    guard let number = state.number(of: namespace) else { return nil }
    return try reading { (database) throws(SQLiteError) in try note(number, key, database) }
  }

  /// All that are kept, by namespace and key.
  public func notes() throws(StoreError) -> [NamespaceName: [String: [UInt8]]] {
    try reading { (database) throws(SQLiteError) in
      var notes: [NamespaceName: [String: [UInt8]]] = [:]
      try database.connection.prepare("SELECT namespace, key, value FROM notes").forEachRow { row in
        guard let namespace = state.namespaces[row.int(0)] else { return }
        notes[namespace, default: [:]][row.text(1)] = row.bytes(2)
      }
      return notes
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
