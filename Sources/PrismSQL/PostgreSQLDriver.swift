import CPostgreSQL
import PrismBase
public import PrismSQLite

/// A connection to PostgreSQL that is made with the first transaction, and again after it was lost.
public final class PostgreSQLDriver: SQLDriver {
  /// First numbers of this program's advisory locks with two numbers: "PR".
  public static let lockClass = 20_562
  /// The same of locks of texts.
  public static let textLockClass = lockClass + 2
  private static let readingMode = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"

  /// nil: the connection's owner begins and ends the transactions.
  private let open: (() throws -> PostgreSQLConnection)?
  private let lasting: Duration
  private var connection: PostgreSQLConnection?
  private var by: Deadline

  public let dialect = SQLDialect.postgreSQL

  /// - Parameter lasting: of a transaction.
  public init(lasting: Duration, _ open: @escaping () throws -> PostgreSQLConnection) {
    (self.open, self.lasting, by) = (open, lasting, Deadline(lasting))
  }

  public init(_ connection: PostgreSQLConnection, by deadline: Deadline) {
    (open, lasting, self.connection, by) = (nil, .zero, connection, deadline)
  }

  /// Of the transaction before, as far as is known.
  public var isConnected: Bool { connection != nil }

  /// The next transaction makes a connection.
  public func close() { connection = nil }

  public func horizon() throws -> Int64 {
    try first { connection in
      guard case .integer(let id) = try connection.query("SELECT prism_horizon()", [], by: by).value(0, 0) else {
        return 0
      }
      return id
    }
  }

  private func connect() throws {
    guard let open else { return }
    connection = try connection ?? open()
    by = Deadline(lasting)
  }

  public func begin(isWriting: Bool) throws {
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

  public func commit() throws { try keeping { connection in try connection.commit(by: by) } }

  public func rollBack() {
    guard let connection, connection.isInTransaction else { return }
    do { try connection.execute("ROLLBACK", by: by) } catch { self.connection = nil }
  }

  public func rows(_ sql: String, _ values: [any SQLConvertible]) throws -> [[SQLValue]] {
    try keeping { connection in
      let result = try connection.query(sql, values.map(\.sqlValue.ofPostgreSQL), by: by)
      return (0..<result.count).map { row in (0..<result.columns).map { result.value(row, $0) } }
    }
  }

  /// The second number of the advisory lock is a hash of the text.
  public func lock(_ text: String, isShared: Bool) throws {
    _ = try rows(
      "SELECT pg_advisory_xact_lock\(isShared ? "_shared" : "")($1, hashtext($2))",
      [Self.textLockClass, text])
  }

  public func description(of error: any Error) -> String { "\(error)" }

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
  public func statements(by deadline: Deadline) -> SQLStatements {
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
