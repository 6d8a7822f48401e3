import PrismBase
import PrismProtocol
import PrismTestSupport
import Synchronization

@testable import PrismCollector

/// A database of a test's own.
struct PostgreSQLRig {
  let server: PostgreSQLServer
  let database: String
  private let lines = LogLines()

  var logged: [String] { lines.all }

  init(_ server: PostgreSQLServer? = nil) async throws {
    let running: PostgreSQLServer
    if let server { running = server } else { running = try await PostgreSQLServer.shared }
    (self.server, database) = (running, try await running.newDatabase())
  }

  func store(
    user: String = "prism", others: [PostgreSQLServer] = [],
    _ change: (inout PostgreSQLPacketStore.Options) -> Void = { _ in }
  ) throws -> PostgreSQLPacketStore {
    let lines = lines
    var options = PostgreSQLPacketStore.Options(
      target: try PostgreSQLTarget(uri: server.uri(database, user: user, others: others)),
      log: Logger(write: { lines.add($0) }))
    options.commitDeadline = .seconds(5)
    change(&options)
    return try PostgreSQLPacketStore(options)
  }

  /// Takes a packet in a transaction of another connection, and leaves it open. - Returns: rolls it back.
  func openTransaction() throws -> () throws -> Void {
    let setup = PostgreSQLSetup(target: try PostgreSQLTarget(uri: server.uri(database)), deadline: .seconds(10))
    let (connection, by) = (try setup.connect(), Deadline(.seconds(60)))
    try connection.execute("BEGIN", by: by)
    _ = try connection.query(
      """
      SELECT prism_store_group(ARRAY[number], ARRAY[gen_random_uuid()], '{NULL}', 1)
      FROM prism_lock_group('{e}', '{prism}', '{m}', ARRAY[gen_random_uuid()], '{NULL}')
      """, by: by)
    return { try connection.execute("ROLLBACK", by: by) }
  }

  func sql(_ text: String) async throws -> [[String]] { try await server.sql(text, in: database) }

  /// Of one value.
  func value(_ text: String) async throws -> String? { try await sql(text).first?.first }
}

/// The lines of a logger.
final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
