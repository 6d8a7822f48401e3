import Glibc
import PrismBase
package import PrismSQL

/// The database of what is known of the fleet beside its packets: devices and their tokens, dictionaries, words of operators
/// on crashes, remote configuration and its rollouts. One set of tables and statements (`FleetSchema`) for both.
package enum FleetDatabase: Sendable {
  /// `fleet.db` in a state folder. Not in the collector's own database, which is set aside when it is damaged: a device that
  /// was revoked must stay so.
  case folder(String)
  /// All replicas share it.
  case server(PostgreSQLTarget)

  static let fileName = "fleet.db"

  /// Whether other collectors use it.
  var isShared: Bool { if case .server = self { true } else { false } }

  /// The tables are there, in this program's version; where the server is not reached, the first question finds that out.
  /// - Returns: the file was missing, and is begun now.
  /// - Throws: the file can't be used: a newer version, damage, rights.
  @discardableResult package func prepare() throws(StoreFailure) -> Bool {
    guard case .folder(let folder) = self else { return false }
    let isMissing = access("\(folder)/\(Self.fileName)", F_OK) != 0
    try FleetSession(self).read { _ in }
    return isMissing
  }

  fileprivate func driver() throws -> any SQLDriver {
    switch self {
    case .server(let target): return PostgreSQLDriver(PostgreSQLSetup(target: target, deadline: .seconds(10)))
    case .folder(let folder):
      let driver = try SQLiteDriver(path: "\(folder)/\(Self.fileName)")
      try FleetSchema.prepare(driver.connection)
      for suffix in ["", "-wal", "-shm"] { Folder.giveToOwner("\(folder)/\(Self.fileName)\(suffix)", of: folder) }
      return driver
    }
  }
}

/// Transactions on the fleet's tables, one after the other, over a connection of its own. Belongs to one actor.
final class FleetSession {
  private let session: SQLSession

  /// Connects with the first transaction.
  init(_ database: FleetDatabase) { session = SQLSession(database.driver) }

  func read<Result>(_ body: (SQLStatements) throws -> Result) throws(StoreFailure) -> Result {
    try perform(isWriting: false, body)
  }

  /// All of it is at rest when it returns, or nothing of it happens. A commit without an answer leaves that open.
  func write<Result>(_ body: (SQLStatements) throws -> Result) throws(StoreFailure) -> Result {
    try perform(isWriting: true, body)
  }

  private func perform<Result>(
    isWriting: Bool, _ body: (SQLStatements) throws -> Result
  ) throws(StoreFailure) -> Result {
    do { return try session.perform(isWriting: isWriting, body) } catch let failure as StoreFailure {
      throw failure
    } catch {
      throw .unavailable(session.driver?.description(of: error) ?? "\(FleetDatabase.fileName): \(error)")
    }
  }
}
