/// Statements of one connection, each prepared once: for work that runs the same ones for many rows. Its owner makes it for that
/// work, and uses one statement at a time. Bound values stay, so each use binds all of them.
public final class SQLiteStatements {
  /// The connection, which lives as long.
  public let connection: SQLiteConnection
  private var prepared: [String: SQLiteStatement] = [:]

  public init(_ connection: SQLiteConnection) { self.connection = connection }

  /// - Parameter sql: of a fixed number of texts: each is kept.
  public func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    if let known = prepared[sql] { return known }
    let statement = try connection.prepare(sql)
    prepared[sql] = statement
    return statement
  }
}
