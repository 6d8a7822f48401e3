import PrismSQLite
import Synchronization

/// The way of a damage that a reader finds to the store, which replaces the database.
final class DamageReports: Sendable {
  let blocks = DamagedBlocks()

  private struct State {
    var replacements = 0
    var handler: (@Sendable (SQLiteError, _ since: Int) -> Void)?
  }

  private let state = Mutex(State())

  /// How often the database was replaced. A reading that began before finds the damage of the file that was set aside.
  var replacements: Int { state.withLock { $0.replacements } }

  func noteReplacement() { state.withLock { $0.replacements += 1 } }

  /// - Parameter handler: gets an error and the number of replacements at the begin of the reading.
  func setHandler(_ handler: @escaping @Sendable (SQLiteError, _ since: Int) -> Void) {
    state.withLock { $0.handler = handler }
  }

  func report(_ error: SQLiteError, since: Int) { state.withLock { $0.handler }?(error, since) }
}
