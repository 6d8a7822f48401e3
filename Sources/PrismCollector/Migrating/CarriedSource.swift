import PrismBase
import PrismProtocol
import PrismSQLite

/// The store that `prism-collector migrate --from` reads: a state folder whose collector is stopped, or a PostgreSQL.
enum CarriedSource {
  case folder(String, StateLock)
  case database(PostgreSQLConnection)

  /// Rows that are read and written at a time.
  static let rowsPerStep = 1000
  /// Of a source that is a database, from its first row to its last.
  static let deadline: Duration = .seconds(86_400)

  private enum Column: String, SQLiteColumn, CaseIterable {
    case c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11
  }

  /// Opens a folder, and brings its database to this program's version. - Throws: where it can't be read, or is in use.
  init(folder: String) throws {
    let lock = try StateLock(folder: folder)
    try DatabaseOpening.hasTables(folder + "/collector.db", nil)
    _ = try PacketDatabase(path: folder + "/collector.db")
    try FleetDatabase.folder(folder).prepare()
    self = .folder(folder, lock)
  }

  /// Reads all of one state of the database.
  init(_ target: PostgreSQLTarget) throws {
    let (connection, by) = (
      try PostgreSQLSetup(target: target, deadline: .seconds(60)).connect(), Deadline(Self.deadline)
    )
    try connection.execute(
      """
      SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
      BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY
      """, by: by)
    self = .database(connection)
  }

  var store: StoreMark {
    get throws {
      switch self {
      case .folder(let folder, _):
        try StoreTables(SQLiteSource(path: folder + "/collector.db").driver(isLong: true)).mark()
      case .database(let connection): try StoreTables(PostgreSQLDriver(connection, by: Deadline(.seconds(60)))).mark()
      }
    }
  }

  /// The highest number that a record got.
  var newestRecord: Int64 {
    get throws {
      switch self {
      case .folder(let folder, _):
        let connection = try SQLiteConnection(.init(path: folder + "/collector.db", isReadOnly: true))
        return try connection.firstInt("SELECT seq FROM sqlite_sequence WHERE name = 'records'") ?? 0
      case .database(let connection):
        return try connection.query(
          "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('records', 'server_id')), 0)",
          by: Deadline(.seconds(60))
        ).int(0, 0)
      }
    }
  }

  /// - Parameter take: gets the columns of some rows.
  func read(_ table: CarriedTable, _ take: ([[String?]]) throws -> Void) throws {
    switch self {
    case .folder(let folder, _):
      let connection = try SQLiteConnection(.init(path: "\(folder)/\(table.file)", isReadOnly: true))
      let select = try connection.prepare(table.sqlite)
      defer { select.reset() }
      let columns = Column.allCases.prefix(table.columns)
      var rows = [[String?]](repeating: [], count: table.columns)
      while let row = try select.next(of: Column.self) {
        for (index, column) in columns.enumerated() { rows[index].append(row.isNull(column) ? nil : row.text(column)) }
        guard rows[0].count == Self.rowsPerStep else { continue }
        try take(rows)
        rows = [[String?]](repeating: [], count: table.columns)
      }
      if !rows[0].isEmpty { try take(rows) }
    case .database(let connection):
      let by = Deadline(Self.deadline)
      _ = try connection.query("DECLARE carried NO SCROLL CURSOR FOR \(table.postgresql)", by: by)
      while case let found = try connection.query("FETCH \(Self.rowsPerStep) FROM carried", by: by), found.count > 0 {
        try take(
          (0..<table.columns).map { column in
            (0..<found.count).map { found.isNull($0, column) ? nil : found.text($0, column) }
          })
      }
      try connection.execute("CLOSE carried", by: by)
    }
  }
}
