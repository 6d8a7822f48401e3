import PrismBase
import PrismProtocol
import PrismSQLite

/// One transaction on the open database: its statements, and the known state in memory. A reading has one too, without
/// BEGIN.
///
/// The types beside it (`Claims`, `DeadLetters`, `Retention` and others) work on one. They never wait for another task.
struct StoreTransaction {
  let database: StoreDatabase
  let memory: StoreMemory

  var state: StoreState {
    _read { yield memory.state }
    nonmutating _modify { yield &memory.state }
  }
  var names: Names { memory.state.names }
  var unixMilliseconds: Int64 { memory.time.unixMilliseconds }
  var uptime: Duration { memory.time.uptime }
  /// Milliseconds by the held clock: what ages are counted by.
  var heldTime: Int64 { memory.held.time(uptime) }

  func statement(_ name: StoreStatement) throws(SQLiteError) -> SQLiteStatement { try database.statement(name) }
  func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement { try database.connection.prepare(sql) }

  // MARK: The ledger

  /// The queue's ledger is written with the commit.
  func touch(_ queue: QueueID) { memory.touched.insert(queue) }

  /// - Throws: `invalidContent` if more rows left than were ever stored: a damaged tree leads to some of them twice.
  func writeLedgers() throws(SQLiteError) {
    let write = try statement(.packets(.writeLedger))
    for queue in memory.touched {
      let record = state[queue].record(queue)
      guard record.isPossible else { throw .invalidContent }
      try write.run(inserting: record)
    }
  }

  /// The clock's settings are written with the first commit after a change; the held time with a commit now and then.
  func writeClock() throws(SQLiteError) {
    _ = memory.clock.read()
    if memory.held.isDue(uptime, holdsRows: state.holdsRows) { try writeHeldTime() }
    guard memory.clock.book.needsWriting else { return }
    try database.connection.setFact(ClockBook.factKey, memory.clock.book.text)
    memory.clock.book.needsWriting = false
  }

  func writeHeldTime() throws(SQLiteError) {
    try database.connection.setFact(HeldClock.factKey, memory.held.written(uptime))
  }

  // MARK: Names

  /// The namespace's number. With the first one its tables and its part of the views are made, and the policy is noted under
  /// which its rows are stored.
  func number(of namespace: NamespaceName) throws(SQLiteError) -> Int {
    if let number = names.number(of: namespace) { return number }
    let number = names.nextNamespace
    state.add(namespace, number: number)
    memory.hasNewNames = true
    try QueueTables.create(number, among: names.namespaces, database.connection) { state[$0].segments.tableCount }
    if let policy = memory.policies.all[namespace] { try note(policy, number) }
    return number
  }

  func number(of type: ReportType) throws(SQLiteError) -> Int64 {
    if let number = names.number(of: type) { return number }
    let number = names.nextType
    try statement(.names(.insertType)).run(inserting: NameRecord(.types, number: number, name: type.text))
    state.add(type, number: number)
    memory.hasNewNames = true
    return number
  }

  // MARK: Notes

  /// nil if there is no such note.
  func note(_ namespace: NamespaceName, _ key: String) throws(SQLiteError) -> [UInt8]? {
    guard let number = names.number(of: namespace) else { return nil }
    return try note(number, key)
  }

  func note(_ namespace: Int, _ key: String) throws(SQLiteError) -> [UInt8]? {
    let read = try statement(.names(.readNote)).bind([":namespace": namespace, ":key": key])
    return try read.first(of: NoteValue.self) { $0.bytes(.value) }
  }

  private enum NoteValue: String, SQLiteColumn { case value }

  func write(_ note: Note) throws(SQLiteError) {
    let number = try number(of: note.namespace)
    if let value = note.value {
      try statement(.names(.writeNote)).run(inserting: NoteRecord(namespace: number, key: note.key, value: value))
    } else {
      try statement(.names(.deleteNote)).run([":namespace": number, ":key": note.key])
    }
  }
}
