import Foundation
import Glibc
import Synchronization

/// A PostgreSQL of a test's own, in a folder of its own, which listens on a Unix socket only. As root it runs as `nobody`,
/// for it refuses root. The kernel kills it when the tests' process ends.
public final class PostgreSQLServer: Sendable {
  public struct Failed: Error, CustomStringConvertible {
    public let description: String
  }

  /// For tests that neither stop it nor change its settings: each takes a database of its own.
  public static var shared: PostgreSQLServer {
    get async throws { try await sharedTask.value }
  }
  private static let sharedTask = Task { try await PostgreSQLServer() }

  /// Lines of postgresql.conf. Nothing is synced: no test turns the machine off. Every plan that may have several
  /// processes has them, as it would on large tables.
  public static let settings = [
    "listen_addresses = ''", "fsync = off", "max_connections = 200", "shared_buffers = 32MB", "wal_level = replica",
    "max_wal_senders = 4", "autovacuum_naptime = 10min", "wal_sender_timeout = 5s", "wal_receiver_timeout = 5s",
    "wal_retrieve_retry_interval = 100ms", "hot_standby_feedback = on",
    "parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0",
    "min_parallel_index_scan_size = 0",
  ]

  private let folder = TemporaryFolder()
  private let program = Mutex<StartedProgram?>(nil)
  private let databases = Mutex(0)

  public var socketFolder: String { folder("socket") }
  private var data: String { folder("data") }

  /// Makes a cluster and starts it. - Parameter primary: copied as its standby; nil: an empty one is made.
  public init(standbyOf primary: PostgreSQLServer? = nil, named name: String = "", settings: [String] = []) async throws
  {
    chmod(folder.path, 0o711)
    for path in [folder("data"), folder("socket")] {
      mkdir(path, 0o700)
      if getuid() == 0 { chown(path, 65534, 65534) }
    }
    if let primary {
      let source = "host=\(primary.socketFolder) user=prism application_name=\(name)"
      try await run("pg_basebackup", ["-D", data, "-R", "-X", "stream", "--checkpoint=fast", "-d", source])
    } else {
      try await run("initdb", ["-D", data, "-U", "prism", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"])
    }
    try set(settings)
    try await start()
  }

  deinit { program.withLock { $0?.signal(SIGKILL) } }

  /// A URI of one of its databases; several servers: libpq takes the first that answers.
  public func uri(_ database: String = "postgres", user: String = "prism", others: [PostgreSQLServer] = []) -> String {
    let hosts = ([self] + others).map(\.socketFolder).joined(separator: ",")
    return "postgresql:///\(database)?host=\(hosts)&user=\(user)"
  }

  /// Makes a database. - Returns: its name.
  public func newDatabase() async throws -> String {
    let number = databases.withLock { count in
      count += 1
      return count
    }
    try await sql("CREATE DATABASE test\(number)")
    return "test\(number)"
  }

  /// Runs statements. - Returns: the rows of the last one, their columns as text.
  @discardableResult
  public func sql(_ text: String, in database: String = "postgres") async throws -> [[String]] {
    let output = try await run(
      "psql", ["-X", "-q", "-A", "-t", "-F", "|", "-v", "ON_ERROR_STOP=1", "-d", uri(database), "-c", text])
    return output.split(separator: "\n").map {
      $0.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
    }
  }

  /// Replaces what earlier calls set; it counts from the next start on, or after `sql("SELECT pg_reload_conf()")`.
  public func set(_ lines: [String]) throws {
    let text = (Self.settings + ["unix_socket_directories = '\(socketFolder)'"] + lines).joined(separator: "\n") + "\n"
    try text.write(toFile: data + "/postgresql.conf", atomically: false, encoding: .utf8)
    if getuid() == 0 { chown(data + "/postgresql.conf", 65534, 65534) }
  }

  /// Starts it, and returns when it answers.
  public func start() async throws {
    while !(try await startOnce()) {}
  }

  /// - Returns: false if children of a postmaster that was killed have not let go of its memory yet.
  private func startOnce() async throws -> Bool {
    let path = folder("log")
    let log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC, 0o600)
    defer { close(log) }
    let command = Self.asUnprivileged(Self.path("postgres"), ["-D", data])
    let started = try StartedProgram(command[0], Array(command.dropFirst()), .init(output: log, error: log))
    program.withLock { $0 = started }
    while started.exitCode == nil {
      if (try? await sql("SELECT 1")) != nil { return true }
      try await Task.sleep(for: .milliseconds(20))
    }
    let text = try String(contentsOfFile: path, encoding: .utf8)
    if text.contains("pre-existing shared memory block") { return false }
    throw Failed(description: "postgres ended: \(text.suffix(2000))")
  }

  /// `SIGKILL`: as by a crash; `SIGINT`: its clients are sent away; `SIGSTOP` and `SIGCONT` do not wait for an end.
  public func signal(_ number: Int32) async {
    let running = program.withLock { $0 }
    running?.signal(number)
    guard number != SIGSTOP, number != SIGCONT else { return }
    _ = await running?.end()
    // The children of a postmaster that was killed end by themselves; a new one waits for their shared memory.
    unlink(data + "/postmaster.pid")
  }

  // MARK: Programs

  @discardableResult
  private func run(_ name: String, _ arguments: [String]) async throws -> String {
    let path = folder("out.\(UUID().uuidString)")
    let output = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    defer {
      close(output)
      unlink(path)
    }
    let command = Self.asUnprivileged(Self.path(name), arguments)
    let code = try await StartedProgram(command[0], Array(command.dropFirst()), .init(output: output, error: output))
      .end()
    let text = try String(contentsOfFile: path, encoding: .utf8)
    guard code == 0 else { throw Failed(description: "\(name) ended with \(code): \(text)") }
    return text
  }

  /// Debian keeps them out of PATH.
  private static func path(_ name: String) -> String {
    let folder = "/usr/lib/postgresql"
    let versions = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    return versions.last.map { "\(folder)/\($0)/bin/\(name)" } ?? name
  }

  private static func asUnprivileged(_ path: String, _ arguments: [String]) -> [String] {
    guard getuid() == 0 else { return [path] + arguments }
    // The change of the user would take back what kills it with the tests.
    return ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig=KILL", path]
      + arguments
  }
}
