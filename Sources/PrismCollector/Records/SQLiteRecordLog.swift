import PrismProtocol
import PrismSQLite

/// The numbers of a namespace's operations, within the transaction of a change or a reading.
struct SQLiteRecordLog {
  /// Numbers up to this one were given by a database that is gone, or by this one.
  static let baseFact = "record_base"

  /// The facts of `StoreMark`.
  static let (idFact, lifeFact) = ("store_id", "store_life")

  /// Gives the store an identity, if that is missing. A damaged page may have one that is not found: it stays.
  static let newStore =
    "INSERT INTO facts VALUES ('\(idFact)', random() & \(Int64.max)), ('\(lifeFact)', 0);"

  /// Takes the identity of a damaged store, of which some may be missing here: it is another life.
  static func adopt(_ store: StoreMark, in connection: SQLiteConnection) throws(SQLiteError) {
    try connection.execute(
      "REPLACE INTO facts VALUES ('\(idFact)', \(store.id)), ('\(lifeFact)', \(store.life + 1))")
  }

  static func store(in connection: SQLiteConnection) throws(SQLiteError) -> StoreMark {
    func fact(_ name: String) throws(SQLiteError) -> Int64 {
      try connection.firstInt("SELECT value FROM facts WHERE name = '\(name)'") ?? 0
    }
    return StoreMark(id: try fact(idFact), life: try fact(lifeFact))
  }

  private let statements: SQLiteStatements
  private let namespace: NamespaceName

  init(_ connection: SQLiteConnection, _ namespace: NamespaceName) {
    self.init(SQLiteStatements(connection), namespace)
  }

  init(_ statements: SQLiteStatements, _ namespace: NamespaceName) {
    (self.statements, self.namespace) = (statements, namespace)
  }

  /// The newest number; nil: the server never changed a record of the namespace.
  func sequence() throws(SQLiteError) -> Int64? {
    let select = try statements.prepare("SELECT seq FROM record_sequences WHERE namespace = :namespace")
    select.bind(":namespace", namespace.text)
    return try select.firstInt()
  }

  /// The newest number, also where no change has one: a device that has this one has all.
  func newest() throws(SQLiteError) -> Int64 { max(try sequence() ?? 0, try base()) }

  /// Devices that know changes before this number only get all records.
  func base() throws(SQLiteError) -> Int64 {
    try statements.connection.firstInt("SELECT value FROM facts WHERE name = '\(Self.baseFact)'") ?? 0
  }

  /// The number for a change of this table.
  func next(for place: RecordPlace) throws(SQLiteError) -> Int64 {
    let count = try statements.prepare(
      """
      INSERT INTO record_sequences VALUES (:namespace, coalesce((SELECT value FROM facts WHERE name = '\(Self.baseFact)'), 0) + 1)
      ON CONFLICT DO UPDATE SET seq = seq + 1 RETURNING seq
      """)
    count.bind(":namespace", namespace.text)
    let number = try count.firstInt() ?? 0
    let note = try statements.prepare(
      """
      INSERT INTO record_tables VALUES (:namespace, :device, :tab, :seq, 0) ON CONFLICT DO UPDATE SET seq = excluded.seq
      """)
    bind(note, place)
    note.bind(":seq", number)
    try note.run()
    return number
  }

  private enum TableColumn: String, SQLiteColumn { case seq, floor }

  /// The newest number of a table, and up to which deletions of it are forgotten; nil: the server never changed it.
  func table(_ place: RecordPlace) throws(SQLiteError) -> (sequence: Int64, floor: Int64)? {
    let select = try statements.prepare(
      """
      SELECT \(TableColumn.list) FROM record_tables WHERE namespace = :namespace AND device = :device AND tab = :tab
      """)
    bind(select, place)
    return try select.first(of: TableColumn.self) { ($0.int64(.seq), $0.int64(.floor)) }
  }

  /// The newest number of what a device reads; 0: it has nothing to learn.
  func version(for device: String) throws(SQLiteError) -> Int64 {
    let select = try statements.prepare(
      "SELECT max(seq) FROM record_tables WHERE namespace = :namespace AND device IN ('', :device)")
    select.bind(":namespace", namespace.text)
    select.bind(":device", device)
    return try select.firstInt() ?? 0
  }

  /// Forgets deletions for which devices get all records anyway.
  func forgetDeletions(of place: RecordPlace) throws(SQLiteError) {
    let find = try statements.prepare(
      """
      SELECT seq FROM deleted_records WHERE namespace = :namespace AND tab = :tab AND device = :device
      ORDER BY seq DESC LIMIT 1 OFFSET \(RecordLog.deletionsMax)
      """)
    bind(find, place)
    guard let floor = try find.firstInt() else { return }
    let forget = try statements.prepare(
      "DELETE FROM deleted_records WHERE namespace = :namespace AND tab = :tab AND device = :device AND seq <= :floor")
    bind(forget, place)
    forget.bind(":floor", floor)
    try forget.run()
    let note = try statements.prepare(
      "UPDATE record_tables SET floor = :floor WHERE namespace = :namespace AND device = :device AND tab = :tab")
    bind(note, place)
    note.bind(":floor", floor)
    try note.run()
  }

  private func bind(_ statement: SQLiteStatement, _ place: RecordPlace) {
    statement.bind(":namespace", place.namespace.text)
    statement.bind(":device", place.owner)
    statement.bind(":tab", place.table.text)
  }
}

/// A deletion of the server's that devices have to learn.
struct RecordDeletion: Sendable, Equatable {
  /// The row's number when it was there.
  var number: Int64
  var isNamed: Bool
  var changedTime: Int64
  var sequence: Int64
}
