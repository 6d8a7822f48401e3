import PrismProtocol
import PrismSQL
import PrismSQLite
import Synchronization

/// `collector.db` for those who read it, and the way of a damage that one of them finds to the store, which replaces the file.
final class SQLiteSource: SQLSource {
  private struct State {
    var replacements = 0
    var handler: (@Sendable (SQLiteError, _ since: Int) async -> StoreFailure)?
  }

  private let path: String
  private let vfs: String?
  private let state = Mutex(State())

  init(path: String, vfs: String? = nil) { (self.path, self.vfs) = (path, vfs) }

  var replacements: Int { state.withLock { $0.replacements } }

  func noteReplacement() { state.withLock { $0.replacements += 1 } }

  /// - Parameter handler: gets an error and the number of replacements at the begin of the reading.
  func setHandler(_ handler: @escaping @Sendable (SQLiteError, _ since: Int) async -> StoreFailure) {
    state.withLock { $0.handler = handler }
  }

  func driver(isLong: Bool) throws -> any SQLDriver {
    let connection = try SQLiteConnection(.init(path: path, isReadOnly: true, vfs: vfs))
    try connection.execute("PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA cache_size = -4096")
    return SQLiteDriver(connection)
  }

  func isTransient(_ error: any Error) -> Bool { false }

  func failure(_ error: any Error, since replacements: Int) async -> StoreFailure {
    guard let handler = state.withLock({ $0.handler }), let error = error as? SQLiteError else {
      return .unavailable("\(error)")
    }
    return await handler(error, replacements)
  }
}

extension SQLiteError {
  /// Runs what throws this error only, or fails by a database that is not as it must be.
  static func only<Result>(_ body: () throws -> Result) throws(SQLiteError) -> Result {
    do { return try body() } catch let error as SQLiteError { throw error } catch { throw .corrupt("\(error)") }
  }
}

/// The store's identity as facts of `collector.db`.
extension StoreMark {
  private static let (idFact, lifeFact) = ("store_id", "store_life")

  /// Gives a new database an identity.
  static let newInSQLite =
    "INSERT INTO facts VALUES ('\(idFact)', random() & \(Int64.max)), ('\(lifeFact)', 0);"

  /// Becomes the identity of the database that replaces a damaged one. Some of it may be missing there: it is another life.
  func adopt(in connection: SQLiteConnection) throws(SQLiteError) {
    try connection.execute(
      "REPLACE INTO facts VALUES ('\(Self.idFact)', \(id)), ('\(Self.lifeFact)', \(life + 1))")
  }
}
