import PrismProtocol
import PrismSQLite

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
