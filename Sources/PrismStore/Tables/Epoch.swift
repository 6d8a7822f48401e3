import PrismSQLite

/// The database's own name, 20 hexadecimal digits: part of every report id that it makes.
struct Epoch: Equatable, Sendable {
  let text: String
  let bytes: [UInt8]

  init(_ text: String) { (self.text, bytes) = (text, Array(text.utf8)) }

  static let key = "epoch"
  static let sumKey = "epoch.sum"

  /// - Parameter sum: nil in databases of version 1.
  static func isOne(_ text: String, sum: String?) -> Bool {
    text.utf8.count == 20 && text.utf8.allSatisfy { isHexadecimal($0) }
      && (sum == nil || sum == self.sum(text))
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  static func sum(_ text: String) -> String { String(NameRecord.checksum(text, number: 0, in: "facts")) }

  static func write(_ text: String, _ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.setFact(key, text)
    try connection.setFact(sumKey, sum(text))
  }

  /// - Throws: `invalidContent` if it is not what was written.
  static func read(_ connection: SQLiteConnection) throws(SQLiteError) -> Epoch {
    guard let text = try connection.fact(key), isOne(text, sum: try connection.fact(sumKey)) else {
      throw .invalidContent
    }
    return Epoch(text)
  }
}
