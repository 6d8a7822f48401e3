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

  var state: StoreState { memory.state }
  var names: Names { memory.state.names }
  var unixMilliseconds: Int64 { memory.time.unixMilliseconds }
  var uptime: Duration { memory.time.uptime }
  /// Milliseconds by the held clock: what ages are counted by.
  var heldTime: Int64 { memory.held.time(uptime) }

  func statement(_ name: StoreStatement) throws(SQLiteError) -> SQLiteStatement { try database.statement(name) }
  func statement(_ sql: SQL) throws(SQLiteError) -> SQLiteStatement { try database.statement(sql) }
  func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement { try database.connection.prepare(sql) }

  // MARK: The ledger

  /// The queue's ledger is written with the commit.
  func touch(_ queue: QueueID) { memory.touched.insert(queue) }

  /// - Throws: `invalidContent` if more rows left than were ever stored: a damaged tree leads to some of them twice.
  func writeLedgers() throws(SQLiteError) {
    let write = try statement(PacketStatement.writeLedger)
    for queue in memory.touched {
      let record = state[queue].record(queue)
      guard record.isPossible else { throw .invalidContent }
      if queue.isInMemory { try MemoryNotes(self).write(record) } else { try write.run(inserting: record) }
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
    try statement(NameStatement.insertType).run(inserting: NameRecord(.types, number: number, name: type.text))
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
    let read = try statement(NameStatement.readNote).bind([":namespace": namespace, ":key": key])
    return try read.first(of: NoteValue.self) { $0.bytes(.value) }
  }

  private enum NoteValue: String, SQLiteColumn { case value }

  func write(_ note: Note) throws(SQLiteError) { try write(note.value, note.key, try number(of: note.namespace)) }

  /// - Parameter value: nil removes the note.
  func write(_ value: [UInt8]?, _ key: String, _ namespace: Int) throws(SQLiteError) {
    if let value {
      try statement(NameStatement.writeNote).run(inserting: NoteRecord(namespace: namespace, key: key, value: value))
    } else {
      try statement(NameStatement.deleteNote).run([":namespace": namespace, ":key": key])
    }
  }

  // MARK: Notes of the policy under which the rows of a namespace were stored

  /// The names of these notes.
  enum NoteKey: String { case appVersion, maxBodyBytes, expirationDays, ringHours }

  /// Notes the policy under which new rows are stored from now on.
  func note(_ policy: RetentionPolicy, _ namespace: Int) throws(SQLiteError) {
    if let version = policy.appVersion, try self.version(namespace) != Array(version.utf8) {
      try write(Array(version.utf8), NoteKey.appVersion.rawValue, namespace)
    }
    try note(policy.maxBodyBytes, .maxBodyBytes, namespace)
    try note(policy.expirationDays, .expirationDays, namespace)
    try note(policy.ringHours, .ringHours, namespace)
  }

  func note(_ number: Int, _ key: NoteKey, _ namespace: Int) throws(SQLiteError) {
    guard try self.number(key, namespace) != number else { return }
    try write(Array(String(number).utf8), key.rawValue, namespace)
  }

  func version(_ namespace: Int) throws(SQLiteError) -> [UInt8]? { try note(namespace, NoteKey.appVersion.rawValue) }

  func number(_ key: NoteKey, _ namespace: Int) throws(SQLiteError) -> Int? {
    try note(namespace, key.rawValue).flatMap { Int(String(decoding: $0, as: UTF8.self)) }
  }
}

/// Operations of the store that work on one transaction. The types that conform own no state.
protocol StoreOperations {
  var transaction: StoreTransaction { get }
}

/// Those that need nothing else.
protocol PlainOperations: StoreOperations {
  init(transaction: StoreTransaction)
}

extension PlainOperations {
  init(_ transaction: StoreTransaction) { self.init(transaction: transaction) }
}

extension StoreOperations {
  var state: StoreState { transaction.memory.state }

  /// Bytes of a namespace's rows of all kinds.
  func bytesHeld(_ namespace: Int) -> Int {
    var sum = 0
    for kind in RowKind.reports { sum += state[QueueID(namespace: namespace, kind: kind)].bytes }
    return sum
  }
}
