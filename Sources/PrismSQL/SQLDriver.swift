public import PrismSQLite

/// Statements that SQLite and PostgreSQL both read, within one transaction. Parameters are `$1` and on, numbers are `bigint`.
public protocol SQLDriver: AnyObject {
  /// Where the tables are not the same.
  var dialect: SQLDialect { get }
  /// Reports with ids from this one on are not final: an open transaction may still fill them. Asked before a transaction.
  func horizon() throws -> Int64
  /// - Parameter isWriting: no other connection writes to the file until it ends. false: all that is read is of one state.
  func begin(isWriting: Bool) throws
  func commit() throws
  /// Ends the transaction without a trace. Never fails: a connection that can't do it is closed.
  func rollBack()
  /// - Returns: the rows, each with the values that the statement lists.
  func rows(_ sql: String, _ values: [any SQLConvertible]) throws -> [[SQLValue]]
  /// Holds those who want the same text until the transaction ends; two who share it don't hold each other.
  func lock(_ text: String, isShared: Bool) throws
  /// Why the statements failed: the database, and its own words.
  func description(of error: any Error) -> String
}

/// Which of the two databases.
public enum SQLDialect: Sendable { case sqlite, postgreSQL }

/// A row of a statement whose columns are an enumeration.
public struct SQLRow<Column: SQLiteColumn> {
  /// In the columns' order.
  public let values: [SQLValue]

  @inlinable init(values: [SQLValue]) { self.values = values }

  /// The value of a column.
  @inlinable public subscript(column: Column) -> SQLValue { values[Int(column.index)] }

  /// nil: NULL.
  @inlinable public func integer(_ column: Column) -> Int64? {
    if case .integer(let value) = self[column] { value } else { nil }
  }
  /// 0 for NULL.
  @inlinable public func int64(_ column: Column) -> Int64 { integer(column) ?? 0 }
  /// 0 for NULL.
  @inlinable public func int(_ column: Column) -> Int { Int(int64(column)) }
  /// nil: NULL.
  @inlinable public func string(_ column: Column) -> String? {
    if case .text(let bytes) = self[column] { String(decoding: bytes, as: UTF8.self) } else { nil }
  }
  /// Empty for NULL.
  @inlinable public func text(_ column: Column) -> String { string(column) ?? "" }
  /// Empty for NULL.
  @inlinable public func bytes(_ column: Column) -> [UInt8] {
    if case .blob(let bytes) = self[column] { bytes } else { [] }
  }
}

// MARK: SQLite

/// One SQLite file, which other connections and processes use at the same time.
public final class SQLiteDriver: SQLDriver {
  /// Its owner may use it between two transactions.
  public let connection: SQLiteConnection
  private let name: String
  private let statements: SQLiteStatements

  public init(path: String) throws {
    name = String(path.split(separator: "/").last ?? "")
    connection = try SQLiteConnection(.init(path: path))
    statements = SQLiteStatements(connection)
    try connection.execute("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
  }

  /// - Parameter connection: whose owner begins and ends the transactions.
  public init(_ connection: SQLiteConnection) {
    (self.connection, name) = (connection, "collector.db")
    statements = SQLiteStatements(connection)
  }

  public var dialect: SQLDialect { .sqlite }
  /// There is one writer at a time.
  public func horizon() -> Int64 { .max }
  public func begin(isWriting: Bool) throws { try connection.execute(isWriting ? "BEGIN IMMEDIATE" : "BEGIN") }
  public func commit() throws { try connection.execute("COMMIT") }
  public func rollBack() { connection.rollBack() }
  /// There is one writer at a time.
  public func lock(_ text: String, isShared: Bool) {}

  public func rows(_ sql: String, _ values: [any SQLConvertible]) throws -> [[SQLValue]] {
    try statements.prepare(sql).rows(values)
  }

  public func description(of error: any Error) -> String { "\(name): \(error)" }
}
