import PrismBase
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Synchronization

@testable import PrismCollector

/// A database of a test's own.
struct PostgreSQLRig {
  /// Takes the tables back to those of version 0.2.0.
  static let firstVersion = """
    DROP FUNCTION prism_lock_group; DROP FUNCTION prism_store_group;
    CREATE FUNCTION prism_take_group() RETURNS integer LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION prism_id_start() RETURNS integer LANGUAGE sql AS 'SELECT 1';
    ALTER TABLE streams DROP COLUMN forgotten_unset;
    ALTER TABLE output_dead RENAME COLUMN time TO noted;
    ALTER TABLE output_dead ALTER COLUMN noted TYPE timestamptz USING to_timestamp(noted / 1000.0),
      ALTER COLUMN is_requeued TYPE boolean USING is_requeued = 1, ALTER COLUMN is_requeued SET DEFAULT false;
    \(StoreRig.fleetOfFirstVersion) \(StoreRig.packetsOfFirstVersion)
    UPDATE prism_schema SET version = \(PostgreSQLSchema.firstVersion);

    """

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
