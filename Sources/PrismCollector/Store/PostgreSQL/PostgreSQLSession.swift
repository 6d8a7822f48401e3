/// Runs transactions one after the other on a connection that it keeps. For state beside the packets; belongs to one actor.
struct PostgreSQLSession {
  /// Of connecting, and of a transaction.
  private static let deadline: Duration = .seconds(10)

  private let setup: PostgreSQLSetup
  private var connection: PostgreSQLConnection?

  /// Connects with the first transaction.
  init(_ target: PostgreSQLTarget) { setup = PostgreSQLSetup(target: target, deadline: Self.deadline) }

  mutating func perform<Result>(
    _ body: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(PostgreSQLSetup.Refusal) -> Result {
    let connection = if let connection { connection } else { try setup.connect() }
    self.connection = connection
    let by = Deadline(Self.deadline)
    do throws(PostgreSQLError) {
      return try connection.transaction(by: by) { () throws(PostgreSQLError) in try body(connection, by) }
    } catch {
      if error.endsConnection { self.connection = nil }
      throw .failed(error)
    }
  }
}
