import Glibc
import PrismBase
import PrismProtocol
public import PrismSQL
import PrismSQLite

/// Carries a store over into a PostgreSQL database, with its identity: devices notice nothing (docs/scale.md, "Three replicas behind haproxy").
///
/// The target has no identity from the begin until the source's moves there at the end: no collector takes anything into it. An
/// interrupted run is run again: it keeps the reports that are carried and that the source still has in the same blocks, and carries
/// all else once more.
public struct StoreMigration {
  /// Why nothing is carried.
  public typealias Fault = StoreBackup.Fault

  private static let deadline: Duration = .seconds(3600)

  private let source: CarriedSource
  private let target: PostgreSQLConnection

  /// - Parameter from: a state folder, or `postgresql://…`.
  /// - Throws: `Fault`.
  public init(from: String, to target: PostgreSQLTarget) throws {
    do {
      source =
        from.contains("://") ? try CarriedSource(try PostgreSQLTarget(uri: from)) : try CarriedSource(folder: from)
    } catch { throw Fault(description: "\(from) can't be read: \(error)") }
    self.target = try PostgreSQLSetup(target: target, deadline: .seconds(60)).connect(needsIdentity: false)
  }

  /// - Parameter say: gets lines of progress.
  public func run(_ say: (String) -> Void) throws {
    let store = try source.store
    guard try begin(store) else { return say("the store \(store) is carried already: nothing was done") }
    for table in CarriedTable.all { try carry(table, say) }
    try carry(.blocks(after: try keepEqualBlocks()), say) { try addDays(of: $0) }
    try carry(.payloads, say)
    // Before the identity: where that has moved, the folder starts no collector.
    try source.noteCarried()
    try finish(store)
    say("the store \(store) is carried: start its collectors with this database")
  }

  // MARK: Steps

  /// - Returns: false: all is there already. - Throws: `Fault` if the target is another store's.
  private func begin(_ store: StoreMark) throws -> Bool {
    let by = Deadline(Self.deadline)
    try target.execute(
      """
      SET statement_timeout = 0; SET lock_timeout = 0;
      CREATE TABLE IF NOT EXISTS store_migration (source bigint NOT NULL)
      """, by: by)
    let begun = try target.transaction(by: by) { () throws(PostgreSQLError) in
      // A group that is being taken is waited for, and the next ones find no identity.
      try target.execute("LOCK TABLE store_mark, streams IN ACCESS EXCLUSIVE MODE", by: by)
      return try begin(store, by)
    }
    return try begun.get()
  }

  private func begin(_ store: StoreMark, _ by: Deadline) throws(PostgreSQLError) -> Result<Bool, Fault> {
    let found = try target.query(
      """
      SELECT (SELECT id FROM store_mark), (SELECT max(source) FROM store_migration), EXISTS (SELECT FROM streams)
        OR EXISTS (SELECT FROM records) OR EXISTS (SELECT FROM record_tables) OR EXISTS (SELECT FROM devices)
      """, by: by)
    let (own, begun) = (found.isNull(0, 0) ? nil : found.int(0, 0), found.isNull(0, 1) ? nil : found.int(0, 1))
    if own == store.id {
      guard source.isCarried else {
        return .failure(
          Fault(
            description:
              "the store \(store) was carried to the target before, and the source may have been used since: give an empty database"
          ))
      }
      return .success(false)
    }
    if begun == store.id {
      // The source may have been used since.
      for table in CarriedTable.all.reversed() { try target.execute("DELETE FROM \(table.target)", by: by) }
    } else if let other = begun ?? (found.bool(0, 2) ? own : nil) {
      return .failure(
        Fault(
          description:
            "the target has data of the store \(StoreMark(id: other)), and \(store) is to be carried: give an empty database"
        ))
    } else {
      _ = try target.query("INSERT INTO store_migration VALUES ($1)", [String(store.id)], by: by)
    }
    try target.execute("DELETE FROM store_mark", by: by)
    return .success(true)
  }

  /// Deletes reports from the first block on that the source does not have so. - Returns: the last report that stays.
  private func keepEqualBlocks() throws -> Int64 {
    let by = Deadline(Self.deadline)
    let carried = try target.query(CarriedTable.blockSums.postgresql, by: by)
    var (same, last, isEqual) = (0, Int64(0), true)
    try source.read(.blockSums) { columns in
      for (id, sum) in zip(columns[0], columns[1]) where isEqual {
        isEqual = same < carried.count && carried.text(same, 0) == id && carried.text(same, 1) == sum
        if isEqual { (same, last) = (same + 1, Int64(sum?.prefix { $0 != " " } ?? "") ?? last) }
      }
    }
    for (table, id) in [("blocks", "id"), ("payloads", "report")] {
      _ = try target.query("DELETE FROM \(table) WHERE \(id) > $1", [String(last)], by: by)
    }
    return last
  }

  private func carry(
    _ table: CarriedTable, _ say: (String) -> Void, prepare: ([[String?]]) throws -> Void = { _ in }
  ) throws {
    var (read, added) = (0, 0)
    try source.read(table) { columns in
      try prepare(columns)
      added += try write(columns, to: table)
      read += columns[0].count
      if read % 100_000 == 0 { say("\(table.name): \(read)") }
    }
    say("\(table.name): \(read), \(added) of them new")
  }

  /// Makes the partitions of the days on which reports were received, and notes the days.
  private func addDays(of blocks: [[String?]]) throws {
    let by = Deadline(Self.deadline)
    try target.transaction(by: by) { () throws(PostgreSQLError) in
      let days = try target.query(
        """
        SELECT (to_timestamp(t::float8 / 1000) AT TIME ZONE 'UTC')::date::text d, min(i)::text
        FROM unnest($1::bigint[], $2::bigint[]) u (i, t) GROUP BY d ORDER BY d
        """, [PostgreSQLArray.text(blocks[0]), PostgreSQLArray.text(blocks[4])], by: by)
      for row in 0..<days.count {
        let statements = target.statements(by: by)
        try PostgreSQLError.only { try PostgreSQLDays(statements: statements).add(day: days.text(row, 0)) }
        _ = try target.query(
          "INSERT INTO days (day, first_report) VALUES ($1::date, $2) ON CONFLICT DO NOTHING",
          [days.text(row, 0), days.text(row, 1)], by: by)
      }
    }
  }

  /// - Returns: how many rows were not there.
  private func write(_ columns: [[String?]], to table: CarriedTable) throws -> Int {
    let names = columns.indices.map { "c\($0)" }.joined(separator: ", ")
    let arrays = columns.indices.map { "$\($0 + 1)::text[]" }.joined(separator: ", ")
    let written = try target.query(
      """
      WITH u (\(names)) AS (SELECT * FROM unnest(\(arrays))), w AS (\(table.insert) RETURNING 1) SELECT count(*) FROM w
      """, columns.map { PostgreSQLArray.text($0) }, by: Deadline(Self.deadline))
    return Int(written.int(0, 0))
  }

  private func finish(_ store: StoreMark) throws {
    let by = Deadline(Self.deadline)
    let newest = try source.newestRecord
    try target.transaction(by: by) { () throws(PostgreSQLError) in
      _ = try target.query(
        "SELECT setval(pg_get_serial_sequence('records', 'server_id'), greatest($1::bigint, 1))", [String(newest)],
        by: by)
      // Later reports get ids behind those that are carried.
      _ = try target.query(
        """
        SELECT setval('report_blocks', greatest((SELECT last_value FROM report_blocks),
          (SELECT coalesce(max(last), 0) >> \(PostgreSQLSchema.blockBits) FROM blocks) + 1))
        """, by: by)
      _ = try target.query(
        "INSERT INTO store_mark (id, life) VALUES ($1, $2)", [String(store.id), String(store.life)], by: by)
    }
  }
}

/// The store that `prism-collector migrate --from` reads: a state folder whose collector is stopped, or a PostgreSQL.
enum CarriedSource {
  case folder(String, StateLock)
  case database(PostgreSQLConnection)

  /// Rows that are read and written at a time.
  static let rowsPerStep = 1000
  /// Of a source that is a database, from its first row to its last.
  static let deadline: Duration = .seconds(86_400)

  private enum Column: String, SQLiteColumn, CaseIterable {
    case c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13
  }

  /// A collector may not start with it any more. A database says nothing of it.
  var isCarried: Bool {
    guard case .folder(let folder, _) = self else { return true }
    return DatabaseFiles(folder: folder).isCarried
  }

  func noteCarried() throws {
    guard case .folder(let folder, _) = self else { return }
    let text =
      "prism-collector migrate carried this store to another database. Delete this file to use the folder again.\n"
    try SmallFile.replace(DatabaseFiles(folder: folder).carriedMark, with: Array(text.utf8))
    try Folder.sync(folder)
  }

  /// Opens a folder, and brings its database to this program's version. - Throws: where it can't be read, or is in use.
  init(folder: String) throws {
    // Opening would make it: an empty store would be carried.
    guard access(folder + "/collector.db", F_OK) == 0 else {
      throw StoreBackup.Fault(description: "the folder has no collector.db")
    }
    let lock = try StateLock(folder: folder)
    guard try DatabaseOpening.hasTables(folder + "/collector.db", nil) else {
      throw StoreBackup.Fault(description: "its collector.db is no database of a collector")
    }
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
