import PrismBase
import PrismProtocol

/// Finds out whether the database commits again, on a connection and a queue of its own. Its commit may wait for a standby
/// for as long as that is away: then it is the one connection that waits.
actor PostgreSQLProbe {
  private let executor = DispatchQueueExecutor(label: "prism.collector.probe")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let setup: PostgreSQLSetup
  /// In the table of replicas.
  private let name: String

  init(_ setup: PostgreSQLSetup) {
    self.setup = setup
    var random = SystemRandomNumberGenerator()
    name = PacketID(unixMilliseconds: SystemTime().unixMilliseconds, using: &random).description
  }

  /// Commits one row. - Returns: nil once it is at rest, else why it is not.
  func failure() -> String? {
    do throws(PostgreSQLSetup.Refusal) {
      let connection = try setup.connect()
      do throws(PostgreSQLError) {
        let by = Deadline(setup.deadline)
        try connection.begin(by: by)
        _ = try connection.query(
          "INSERT INTO replicas VALUES ($1, now()) ON CONFLICT (replica) DO UPDATE SET seen = now()", [name], by: by)
        try connection.commit(by: Deadline(.seconds(60)))
        return nil
      } catch { throw .failed(error) }
    } catch {
      return error.description
    }
  }
}
