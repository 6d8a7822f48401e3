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
