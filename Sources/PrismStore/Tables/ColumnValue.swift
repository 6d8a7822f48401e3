import PrismBase
import PrismProtocol
import PrismSQLite

protocol ColumnValue {
  /// nil if the column can't have such a value.
  init?(column value: SQLValue)
  var columnValue: SQLValue { get }
}

extension ColumnValue where Self: SQLConvertible {
  var columnValue: SQLValue { sqlValue }
}

extension ColumnValue where Self: BinaryInteger {
  init?(column value: SQLValue) {
    guard case .integer(let number) = value else { return nil }
    self.init(number)
  }
}

extension ColumnValue where Self: RawRepresentable, RawValue: ColumnValue {
  init?(column value: SQLValue) {
    guard let raw = RawValue(column: value) else { return nil }
    self.init(rawValue: raw)
  }
  var columnValue: SQLValue { rawValue.columnValue }
}

protocol TextColumnValue: ColumnValue {
  init?(text: String)
  var text: String { get }
}

extension TextColumnValue {
  init?(column value: SQLValue) {
    guard let text = String(column: value) else { return nil }
    self.init(text: text)
  }
  var columnValue: SQLValue { text.columnValue }
}

extension Int64: ColumnValue {}
extension Int: ColumnValue {}
extension RowFlags: ColumnValue {}
extension RecordState: ColumnValue {}
extension RecordOperation.Kind: ColumnValue {}
extension IDRuns: TextColumnValue {}

extension Bool: ColumnValue {
  init?(column value: SQLValue) {
    guard let number = Int(column: value) else { return nil }
    self = number != 0
  }
}

extension [UInt8]: ColumnValue {
  init?(column value: SQLValue) {
    switch value {
    case .text(let bytes), .blob(let bytes): self = bytes
    case .null, .integer, .real: return nil
    }
  }
}

extension String: ColumnValue {
  init?(column value: SQLValue) {
    guard let bytes = [UInt8](column: value), let text = String(validating: bytes, as: UTF8.self) else { return nil }
    self = text
  }
}

extension Optional: ColumnValue where Wrapped: ColumnValue {
  /// nil for a value that can't be, too.
  init?(column value: SQLValue) { self = value == .null ? .none : Wrapped(column: value) }
  var columnValue: SQLValue { self?.columnValue ?? .null }
}

extension PacketID: ColumnValue {
  /// Before a row is read.
  static let zero = PacketID(high: 0, low: 0)

  init?(column value: SQLValue) {
    guard let bytes = [UInt8](column: value) else { return nil }
    self.init(bytes: bytes)
  }
  var columnValue: SQLValue { .blob(bytes) }
}

extension RecordID: TextColumnValue {
  /// Before a row is read.
  static let unread = RecordID("-")!

  init?(text: String) { self.init(text) }
}

extension RecordTableName: TextColumnValue {
  init?(text: String) { self.init(text) }
}

extension RowOwner: ColumnValue {
  /// Versions before 3 of the database knew no owner.
  init?(column value: SQLValue) { self.init(stored: Int64(column: value) ?? Self.unknown.number) }
  var columnValue: SQLValue { .integer(number) }
}

/// The boot and the setting of the clock under which a row came, a packet was claimed or a record was changed.
struct ClockStamp: Equatable {
  let bootID: String
  let setting: ClockSetting
}

extension ClockStamp: TextColumnValue {
  init?(text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 2, let bootTime = Int64(words[1]) else { return nil }
    self.init(bootID: String(words[0]), setting: ClockSetting(bootTime: bootTime))
  }

  var text: String { "\(bootID) \(setting.bootTime)" }
}
