import CPostgreSQL
import PrismBase
import PrismSQLite

/// A connection to PostgreSQL that is made with the first transaction, and again after it was lost.
final class PostgreSQLDriver: SQLDriver {
  static let readingMode = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"

  /// nil: the connection's owner begins and ends the transactions.
  private let setup: PostgreSQLSetup?
  private let lasting: Duration
  private var connection: PostgreSQLConnection?
  private var by: Deadline

  let dialect = SQLDialect.postgreSQL

  /// - Parameters:
  ///   - setup: its deadline is of connecting.
  ///   - lasting: of a transaction; nil: as long as connecting.
  init(_ setup: PostgreSQLSetup, lasting: Duration? = nil) {
    (self.setup, self.lasting, by) = (setup, lasting ?? setup.deadline, Deadline(setup.deadline))
  }

  init(_ connection: PostgreSQLConnection, by deadline: Deadline) {
    (setup, lasting, self.connection, by) = (nil, .zero, connection, deadline)
  }

  /// Of the transaction before, as far as is known.
  var isConnected: Bool { connection != nil }

  func close() { connection = nil }

  func horizon() throws -> Int64 {
    try first { connection in
      guard case .integer(let id) = try connection.query("SELECT prism_horizon()", [], by: by).value(0, 0) else {
        return 0
      }
      return id
    }
  }

  private func connect() throws {
    guard let setup else { return }
    connection = try connection ?? setup.connect()
    by = Deadline(lasting)
  }

  func begin(isWriting: Bool) throws {
    try first { connection in try connection.begin(isWriting ? "" : Self.readingMode, by: by) }
  }

  /// Runs what comes first on a connection. One that ended since the transaction before, as at a restart of the server, is
  /// made again: it was asked for nothing yet.
  private func first<Result>(_ body: (PostgreSQLConnection) throws -> Result) throws -> Result {
    let isKept = connection != nil
    try connect()
    do { return try keeping(body) } catch let error as PostgreSQLError where isKept && error.kind != .late {
      guard connection == nil else { throw error }
      try connect()
      return try keeping(body)
    }
  }

  func commit() throws { try keeping { connection in try connection.commit(by: by) } }

  func rollBack() {
    guard let connection, connection.isInTransaction else { return }
    do { try connection.execute("ROLLBACK", by: by) } catch { self.connection = nil }
  }

  func rows(_ sql: String, _ values: [any SQLConvertible]) throws -> [[SQLValue]] {
    try keeping { connection in
      let result = try connection.query(sql, values.map(\.sqlValue.ofPostgreSQL), by: by)
      return (0..<result.count).map { row in (0..<result.columns).map { result.value(row, $0) } }
    }
  }

  /// The second number of the advisory lock is a hash of the text.
  func lock(_ text: String, isShared: Bool) throws {
    _ = try rows(
      "SELECT pg_advisory_xact_lock\(isShared ? "_shared" : "")($1, hashtext($2))",
      [PostgreSQLSchema.textLockClass, text])
  }

  func description(of error: any Error) -> String { "\(error)" }

  /// - Throws: an error that ends the connection drops it.
  private func keeping<Result>(_ body: (PostgreSQLConnection) throws -> Result) throws -> Result {
    guard let connection else { throw PostgreSQLError(kind: .lost, message: "the connection ended") }
    do { return try body(connection) } catch {
      if (error as? PostgreSQLError)?.endsConnection == true { self.connection = nil }
      throw error
    }
  }
}

extension PostgreSQLConnection {
  /// The statements of a transaction that the connection's owner begins and ends.
  func statements(by deadline: Deadline) -> SQLStatements {
    SQLStatements(driver: PostgreSQLDriver(self, by: deadline))
  }
}

extension SQLValue {
  /// In PostgreSQL's text form.
  fileprivate var ofPostgreSQL: String? {
    switch self {
    case .null: nil
    case .integer(let value): String(value)
    case .real(let value): String(value)
    case .text(let bytes): String(decoding: bytes, as: UTF8.self)
    case .blob(let bytes): "\\x" + Hex.encode(bytes)
    }
  }
}

extension PostgreSQLResult {
  /// Numbers of types in PostgreSQL's catalog `pg_type`.
  private enum TypeNumber: UInt32 {
    case bool = 16
    case bytea
    case int8 = 20
    case int4 = 23
  }

  fileprivate var columns: Int { Int(PQnfields(pointer)) }

  fileprivate func value(_ row: Int, _ column: Int) -> SQLValue {
    guard !isNull(row, column) else { return .null }
    return switch TypeNumber(rawValue: PQftype(pointer, Int32(column))) {
    case .bool: .integer(bool(row, column) ? 1 : 0)
    case .int4, .int8: .integer(int(row, column))
    case .bytea: .blob(Array(bytes(row, column)))
    case nil: .text(Array(bytes(row, column)))
    }
  }
}
