import PrismSQLite

// `facts`: single values of the database, by name.
extension SQLiteConnection {
  enum FactColumn: String, SQLiteColumn { case name, value }

  /// - Returns: nil if there is no such fact.
  func fact(_ name: String) throws(SQLiteError) -> String? {
    let read = try prepare("SELECT value FROM facts WHERE name = :name").bind([":name": name])
    return try read.firstText()
  }

  /// - Parameter value: nil removes it.
  func setFact(_ name: String, _ value: String?) throws(SQLiteError) {
    guard let value else { return try prepare("DELETE FROM facts WHERE name = :name").run([":name": name]) }
    try prepare("REPLACE INTO facts (name, value) VALUES (:name, :value)").run([":name": name, ":value": value])
  }
}

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

  static func sum(_ text: String) -> String { String(NameRecord(table: "facts", name: text).checksum) }

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

/// The lowest numbers that may be given to new names and contexts: lower ones were lost with a damaged database, and rows
/// may still have them.
struct NumberFloors {
  private static let key = "floors"
  var namespace = 1
  var type: Int64 = 1
  var context: Int64 = 1

  init(namespace: Int, type: Int64) { (self.namespace, self.type) = (namespace, type) }

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    let numbers = (try connection.fact(Self.key) ?? "").split(separator: " ").compactMap { Int64($0) }
    guard numbers.count == 3, (1...1_000_000).contains(numbers[0]) else { return }
    (namespace, type, context) = (Int(numbers[0]), numbers[1], numbers[2])
  }

  func write(_ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.setFact(Self.key, "\(namespace) \(type) \(context)")
  }
}
