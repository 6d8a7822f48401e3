import PrismProtocol
import PrismSQLite

/// The store's identity as facts of `collector.db`.
extension StoreMark {
  private static let (idFact, lifeFact) = ("store_id", "store_life")

  /// Gives a new database an identity.
  static let newInSQLite =
    "INSERT INTO facts VALUES ('\(idFact)', random() & \(Int64.max)), ('\(lifeFact)', 0);"

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    func fact(_ name: String) throws(SQLiteError) -> Int64 {
      try connection.firstInt("SELECT value FROM facts WHERE name = '\(name)'") ?? 0
    }
    self.init(id: try fact(Self.idFact), life: try fact(Self.lifeFact))
  }

  /// Becomes the identity of the database that replaces a damaged one. Some of it may be missing there: it is another life.
  func adopt(in connection: SQLiteConnection) throws(SQLiteError) {
    try connection.execute(
      "REPLACE INTO facts VALUES ('\(Self.idFact)', \(id)), ('\(Self.lifeFact)', \(life + 1))")
  }
}
