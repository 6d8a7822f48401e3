/// One step from a version of a database to the next: a value in a list that is only ever appended to.
public struct SQLiteMigration: Sendable {
  /// `user_version` once it is done.
  public let version: Int
  /// A description for people.
  public let name: String
  let apply: @Sendable (SQLiteConnection) throws(SQLiteError) -> Void

  /// - Parameter apply: runs in a transaction.
  public init(
    version: Int, name: String, apply: @escaping @Sendable (SQLiteConnection) throws(SQLiteError) -> Void
  ) {
    (self.version, self.name, self.apply) = (version, name, apply)
  }
}

extension SQLiteConnection {
  /// Applies those of `migrations` that are newer than the database, each in a transaction of its own: after a stop at any
  /// point the next call continues.
  /// - Parameter didApply: called in the migration's transaction, behind it.
  public func migrate(
    _ migrations: [SQLiteMigration], didApply: (SQLiteMigration) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    let current = try version()
    for migration in migrations where migration.version > current {
      try transaction { () throws(SQLiteError) in
        try migration.apply(self)
        try execute("PRAGMA user_version = \(migration.version)")
        try didApply(migration)
      }
    }
  }

  /// `user_version`: 0 for a database that was not migrated.
  public func version() throws(SQLiteError) -> Int { Int(try firstInt("PRAGMA user_version") ?? 0) }
}
