import PrismSQLite

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
