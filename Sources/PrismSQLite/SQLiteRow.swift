public import CSQLite

/// The source of a record: a row that a query returned, or one that was found in a damaged file.
public protocol SQLiteValues<Column> {
  /// The columns that it has.
  associatedtype Column: SQLiteColumn
  /// nil: NULL, another kind of value, or the row was written before the table had this column.
  func integer(_ column: Column) -> Int64?
  /// The same for a text or a blob.
  func data(_ column: Column) -> [UInt8]?
  /// false: the row was written before the table had this column.
  func has(_ column: Column) -> Bool
}

extension SQLiteValues {
  /// A text; nil also if it is not UTF-8.
  public func string(_ column: Column) -> String? { data(column).flatMap { String(validating: $0, as: UTF8.self) } }
}

/// The current row of a statement, read in place: valid until the statement steps on or is reset.
public struct SQLiteRow<Column: SQLiteColumn> {
  @usableFromInline let handle: OpaquePointer

  @inlinable init(_ handle: OpaquePointer) { self.handle = handle }

  /// 0 for NULL.
  @inlinable public func int64(_ column: Column) -> Int64 { sqlite3_column_int64(handle, column.index) }
  /// 0 for NULL.
  @inlinable public func int(_ column: Column) -> Int { Int(sqlite3_column_int64(handle, column.index)) }
  /// Whether the value is NULL.
  @inlinable public func isNull(_ column: Column) -> Bool {
    sqlite3_column_type(handle, column.index) == SQLITE_NULL
  }

  /// The bytes in SQLite's memory: valid until the next step, reset or read of the same column. Empty for NULL.
  @inlinable public func blob(_ column: Column) -> UnsafeRawBufferPointer {
    guard let start = sqlite3_column_blob(handle, column.index) else {
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column.index)))
  }

  /// Empty for NULL.
  public func bytes(_ column: Column) -> [UInt8] { [UInt8](blob(column)) }
  /// Empty for NULL. Bytes that aren't UTF-8 are replaced.
  public func text(_ column: Column) -> String { String(decoding: blob(column), as: UTF8.self) }
}

extension SQLiteRow: SQLiteValues {
  /// nil: NULL, or another kind of value.
  public func integer(_ column: Column) -> Int64? {
    sqlite3_column_type(handle, column.index) == SQLITE_INTEGER ? int64(column) : nil
  }

  /// The bytes of a text or a blob; nil: another kind of value.
  public func data(_ column: Column) -> [UInt8]? {
    [SQLITE_TEXT, SQLITE_BLOB].contains(sqlite3_column_type(handle, column.index)) ? bytes(column) : nil
  }

  /// true: a query returns every column.
  public func has(_ column: Column) -> Bool { true }
}

/// A value of a row, or of a parameter.
public enum SQLValue: Sendable, Equatable {
  case null
  case integer(Int64)
  case real(Double)
  /// UTF-8.
  case text([UInt8])
  case blob([UInt8])
}

/// A value that a parameter can have.
public protocol SQLConvertible {
  /// The value that the database gets.
  var sqlValue: SQLValue { get }
}

extension SQLValue: SQLConvertible {
  public var sqlValue: SQLValue { self }
}

extension Int64: SQLConvertible {
  public var sqlValue: SQLValue { .integer(self) }
}

extension Int: SQLConvertible {
  /// As 64 bits.
  public var sqlValue: SQLValue { .integer(Int64(self)) }
}

extension Bool: SQLConvertible {
  /// 1 or 0.
  public var sqlValue: SQLValue { .integer(self ? 1 : 0) }
}

extension String: SQLConvertible {
  public var sqlValue: SQLValue { .text(Array(utf8)) }
}

extension [UInt8]: SQLConvertible {
  public var sqlValue: SQLValue { .blob(self) }
}

extension Optional: SQLConvertible where Wrapped: SQLConvertible {
  /// nil is NULL.
  public var sqlValue: SQLValue { self?.sqlValue ?? .null }
}
