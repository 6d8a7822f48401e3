import PrismProtocol

/// Numbers below which none is given out: those of names and contexts that were lost with a damaged database, and that
/// rows may yet have.
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

/// The database's name: part of every report id that it makes.
enum Epoch {
  static let key = "epoch"
  static let sumKey = "epoch.sum"

  /// - Parameter sum: nil in databases of version 1.
  static func isOne(_ text: String, sum: String?) -> Bool {
    text.utf8.count == 20 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
      && (sum == nil || sum == self.sum(text))
  }

  static func sum(_ text: String) -> String { String(RowSum.ofName(text, number: 0, in: "facts")) }

  static func write(_ text: String, _ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.setFact(key, text)
    try connection.setFact(sumKey, sum(text))
  }

  /// - Throws: `nonsense` where it is not what was written.
  static func read(_ connection: SQLiteConnection) throws(SQLiteError) -> String {
    guard let text = try connection.fact(key), isOne(text, sum: try connection.fact(sumKey)) else { throw .nonsense }
    return text
  }
}
