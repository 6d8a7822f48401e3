/// A value to be bound.
enum SQLiteValue: Sendable {
  case null
  case int(Int64)
  case text(String)
  case blob([UInt8])
}

extension SQLiteConnection {
  /// A whole row, in the order of the table's columns; one that breaks a rule (a key that is there already) is left out.
  func insert(_ table: String, _ values: [SQLiteValue]) throws(SQLiteError) {
    let places = values.map { _ in "?" }.joined(separator: ",")
    let statement = try prepare("INSERT OR IGNORE INTO \(table) VALUES (\(places))")
    for (index, value) in values.enumerated() {
      let place = Int32(index + 1)
      switch value {
      case .null: statement.bindNull(place)
      case .int(let number): statement.bind(place, number)
      case .text(let text): statement.bind(place, text)
      case .blob(let bytes): statement.bind(place, bytes)
      }
    }
    try statement.run()
  }
}
