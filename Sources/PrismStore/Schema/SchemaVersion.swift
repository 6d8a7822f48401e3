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
    let written = try connection.fact(factKey).map { Int($0) ?? -1 }
    guard written ?? version == version else { throw .invalidContent }
    guard version <= StoreSchema.newestVersion else { throw .newer(version) }
    guard written != nil, version >= StoreSchema.firstVersion else {
      throw .corrupt("the database is of version \(version), before the first published one")
    }
  }
}

// Errors of the store's own about its database.
extension SQLiteError {
  /// The structure is sound, but a value was changed: its checksum fails, or it contradicts another.
  static let invalidContent = SQLiteError.corrupt("the database has content that prism never writes")
  static let damagedLog = SQLiteError.corrupt("the write-ahead log is damaged before its end")
  /// The file was replaced by another database of prism's.
  static let otherDatabase = SQLiteError(
    code: -2, message: "another database of prism's was put in the place of ours: restart prismd to use it")
  /// The file was replaced by one with other names: what the caller knows by their numbers is not valid any more.
  static let changedNames = SQLiteError(code: -2, message: "the database is another one than before")

  /// The database is of a version that this program doesn't know.
  static func newer(_ version: Int) -> SQLiteError { SQLiteError(code: -1, message: String(version)) }
  var newerVersion: Int? { code == -1 ? Int(message) : nil }
}
