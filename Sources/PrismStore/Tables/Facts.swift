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
    let statement = try prepare(
      value == nil ? "DELETE FROM facts WHERE name = :name" : "REPLACE INTO facts (name, value) VALUES (:name, :value)")
    statement.bind(":name", name)
    if let value { statement.bind(":value", value) }
    try statement.run()
  }
}
