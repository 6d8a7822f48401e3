import PrismSQLite

/// Tells the store's own database from another's, and a newer one from a damaged one.
enum SchemaVersion {
  static let factKey = "version"
  /// "PRSM", so that `file` and others can tell whose database it is.
  static let applicationID = 0x5052_534D

  /// - Throws: `newer`; `invalidContent` for a file that the store did not make, or whose header was changed.
  static func check(_ connection: SQLiteConnection) throws(SQLiteError) {
    let version = Int(try connection.firstInt("PRAGMA user_version") ?? 0)
    let tables = try connection.firstInt("SELECT count(*) FROM sqlite_schema") ?? 0
    guard tables > 0 else {
      guard version == 0 else { throw .invalidContent }
      return
    }
    guard try connection.firstInt("SELECT count(*) FROM sqlite_schema WHERE name = 'facts'") == 1 else {
      throw .invalidContent
    }
    // Version 1 did not write it down a second time.
    let written =
      try connection.fact(factKey).map { Int($0) ?? -1 } ?? (version > StoreSchema.newestVersion ? version : 1)
    guard written == version else { throw .invalidContent }
    guard version <= StoreSchema.newestVersion else { throw .newer(version) }
  }
}
