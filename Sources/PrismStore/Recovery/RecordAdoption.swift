import PrismProtocol
import PrismSQLite
import PrismSalvage

/// Takes over into a new database the records that can be read of a damaged one. An operation that was in flight is sent
/// again, under another packet's id: the server knows the record by its id.
struct RecordAdoption {
  private let connection: SQLiteConnection
  private var tables: [Int: RecordTableRow] = [:]

  private init(_ connection: SQLiteConnection) { self.connection = connection }

  /// - Parameter namespaces: those of the new database.
  static func run(
    _ database: DamagedDatabase, into connection: SQLiteConnection, namespaces: Set<Int>
  ) throws(SQLiteError) {
    var adoption = RecordAdoption(connection)
    try database.forEachRecord(of: "record_tables") { (record) throws(SQLiteError) in
      guard let table = RecordTableRow(record.row(of: RecordTableRow.Column.self)), namespaces.contains(table.namespace)
      else { return }
      if table.ledger.stored >= adoption.tables[table.number]?.ledger.stored ?? 0 {
        adoption.tables[table.number] = table
      }
    }
    var newest: [Int64: Int64] = [:]
    try database.forEachRecord(of: "records") { (record) throws(SQLiteError) in
      guard let row = RecordRow(record.row(of: RecordRow.Column.self)), adoption.tables[row.table] != nil,
        row.version > newest[row.number] ?? -1
      else { return }
      newest[row.number] = row.version
      try adoption.take(row)
    }
    try adoption.writeTables()
  }

  private func take(_ row: RecordRow) throws(SQLiteError) {
    var row = row
    // An insert that may have left must be undone there.
    let isGone =
      row.standing.sent == .insert && row.standing.state == .delete ? row.standing.confirm() : row.standing.release()
    guard !isGone else { return }
    let insert = try connection.prepare(RecordRow.insert(into: "records", "OR REPLACE"))
    try insert.run(inserting: row)
  }

  /// Changes that are lost with their records count as corrupt.
  private func writeTables() throws(SQLiteError) {
    let insert = try connection.prepare(RecordTableRow.insert(into: "record_tables"))
    for (number, found) in tables {
      var table = found
      table.records = try count("SELECT count(*) FROM records WHERE tab = \(number)")
      (table.ledger[.waiting], table.ledger[.claimed]) = (
        try count("SELECT count(*) FROM records WHERE tab = \(number) AND next > 0"), 0
      )
      let settled = table.ledger[.delivered] + table.ledger[.dead] + table.ledger[.removed] + table.ledger[.waiting]
      table.ledger[.corrupt] = max(0, found.ledger.stored - settled)
      table.ledger.stored = settled + table.ledger[.corrupt]
      table.generation += 1
      try insert.run(inserting: table)
    }
  }

  private func count(_ sql: String) throws(SQLiteError) -> Int { Int(try connection.firstInt(sql) ?? 0) }
}
