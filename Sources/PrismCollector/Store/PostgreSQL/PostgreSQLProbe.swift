import PrismBase
import PrismProtocol
import PrismSQL

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
    do {
      try SQLSession { PostgreSQLDriver(self.setup, lasting: .seconds(60)) }.perform(isWriting: true) {
        _ = try $0.run(
          "INSERT INTO replicas VALUES ($1, now()) ON CONFLICT (replica) DO UPDATE SET seen = now()", [name])
      }
      return nil
    } catch { return "\(error)" }
  }
}
