public import PrismSQLite

/// The statements of one transaction, in SQL that both databases read.
public struct SQLStatements {
  /// The database that carries them out.
  public let driver: any SQLDriver
  /// Ids from this one on are not final: an open transaction may still fill them.
  public let horizon: Int64

  /// Rows of one statement at most: few different texts are prepared.
  private static let chunks = [128, 16, 1]

  public init(driver: any SQLDriver, horizon: Int64 = .max) { (self.driver, self.horizon) = (driver, horizon) }

  /// - Parameter sql: what follows `SELECT` and the columns.
  @inlinable public func rows<Column: SQLiteColumn>(
    of columns: Column.Type, _ sql: String, _ values: [any SQLConvertible] = []
  ) throws -> [SQLRow<Column>] {
    try driver.rows("SELECT \(Column.list) \(sql)", values).map { SQLRow(values: $0) }
  }

  /// The first of them; nil: there is no row.
  @inlinable public func first<Column: SQLiteColumn>(
    of columns: Column.Type, _ sql: String, _ values: [any SQLConvertible] = []
  ) throws -> SQLRow<Column>? { try rows(of: columns, sql, values).first }

  /// The rows of a table that has one of these keys each. - Parameters:
  ///   - key: the columns that are compared with the keys.
  ///   - condition: of the table's rows, in which parameters begin at `$1`.
  public func rows<Column: SQLiteColumn>(
    of columns: Column.Type, from table: String, key: [String], in keys: [[any SQLConvertible]],
    where condition: String, _ values: [any SQLConvertible]
  ) throws -> [SQLRow<Column>] {
    var found: [SQLRow<Column>] = []
    try forEachChunk(of: keys) { chunk in
      let places = Self.places(chunk.count, of: key.count, after: values.count)
      // The keys are the outer loop: each is found by the table's index.
      let sql = """
        FROM (VALUES \(places)) v CROSS JOIN \(table) WHERE \(condition)
          AND \(key.enumerated().map { "\($1) = v.column\($0 + 1)" }.joined(separator: " AND "))
        """
      found += try rows(of: columns, sql, values + chunk.flatMap { $0 })
    }
    return found
  }

  /// Inserts rows. - Parameter conflict: what follows `ON CONFLICT`.
  public func insert<Column: SQLiteColumn>(
    _ columns: Column.Type, into table: String, rows: [[any SQLConvertible]], onConflict conflict: String = ""
  ) throws {
    try insert(columns, into: table, rows: rows, onConflict: conflict, returning: nil as Column.Type?) { _ in }
  }

  /// Inserts one row.
  public func insert<Column: SQLiteColumn>(
    _ columns: Column.Type, into table: String, _ values: [any SQLConvertible], onConflict conflict: String = ""
  ) throws { try insert(columns, into: table, rows: [values], onConflict: conflict) }

  /// - Parameter take: gets the columns of each row as it is then, in any order.
  public func insert<Column: SQLiteColumn, Returned: SQLiteColumn>(
    _ columns: Column.Type, into table: String, rows: [[any SQLConvertible]], onConflict conflict: String = "",
    returning returned: Returned.Type?, _ take: (SQLRow<Returned>) -> Void
  ) throws {
    try forEachChunk(of: rows) { chunk in
      let sql = """
        INSERT INTO \(table) (\(Column.list)) VALUES \(Self.places(chunk.count, of: Column.allCases.count, after: 0))
        \(conflict.isEmpty ? "" : "ON CONFLICT \(conflict)") \(returned.map { "RETURNING \($0.list)" } ?? "")
        """
      for row in try driver.rows(sql, chunk.flatMap { $0 }) { take(SQLRow(values: row)) }
    }
  }

  private func forEachChunk<Row>(of rows: [Row], _ body: ([Row]) throws -> Void) rethrows {
    var rest = rows[...]
    for size in Self.chunks {
      while rest.count >= size {
        try body(Array(rest.prefix(size)))
        rest = rest.dropFirst(size)
      }
    }
  }

  private static func places(_ rows: Int, of columns: Int, after last: Int) -> String {
    (0..<rows).map { row in
      "(" + (0..<columns).map { "$\(last + row * columns + $0 + 1)" }.joined(separator: ", ") + ")"
    }.joined(separator: ", ")
  }

  /// - Returns: the rows that a statement returns that ends with `RETURNING 1`.
  @discardableResult public func run(_ sql: String, _ values: [any SQLConvertible] = []) throws -> Int {
    try driver.rows(sql, values).count
  }

  /// Past `countMax` rows, an owner of most loses its own: one's many rows take no other's place.
  /// - Parameter owner: the column that says whose a row is.
  /// - Parameter order: in which an owner's rows are kept, the first ones for longest.
  public func trim(_ table: String, to countMax: Int, key: String, of owner: String, by order: String) throws {
    guard let count = try integer("SELECT count(*) FROM \(table)"), count > countMax else { return }
    try run(
      """
      DELETE FROM \(table) WHERE \(key) IN (SELECT \(key) FROM (SELECT \(key),
          row_number() OVER (PARTITION BY \(owner) ORDER BY \(order), \(key)) AS place FROM \(table)) AS placed
        ORDER BY place, \(key) LIMIT 1000 OFFSET \(countMax))
      """)
  }

  /// The first value of the first row; nil: there is no row, or the value is no number.
  public func integer(_ sql: String, _ values: [any SQLConvertible] = []) throws -> Int64? {
    if case .integer(let value) = try driver.rows(sql, values).first?.first { value } else { nil }
  }

  /// The values of all rows, as texts; that of NULL is empty.
  public func texts(_ sql: String, _ values: [any SQLConvertible] = []) throws -> [[String]] {
    try driver.rows(sql, values).map { row in
      row.map { value in
        switch value {
        case .null, .blob: ""
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let bytes): String(decoding: bytes, as: UTF8.self)
        }
      }
    }
  }

  /// The first value of the first row as a text; nil: there is no row.
  public func text(_ sql: String, _ values: [any SQLConvertible] = []) throws -> String? {
    try texts(sql, values).first?.first
  }
}

extension SQLiteColumn {
  /// For `ON CONFLICT`: the row that is there takes the new one's values.
  public static func replacing(_ key: Self...) -> String {
    let names = key.map(\.sqlName)
    let others = allCases.map(\.sqlName).filter { !names.contains($0) }
    return "(\(names.joined(separator: ", "))) DO UPDATE SET "
      + others.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
  }
}
