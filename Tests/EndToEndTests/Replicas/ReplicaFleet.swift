import Foundation
import Glibc
import PrismProtocol
import PrismTestSupport
import Synchronization

/// Collectors on one database with a synchronous standby, behind haproxy, which asks each whether it is ready.
final class ReplicaFleet: Sendable {
  private let primary: PostgreSQLServer, standby: PostgreSQLServer
  private let isPromoted = Mutex(false)
  /// The one that takes packets now.
  var database: PostgreSQLServer { isPromoted.withLock { $0 } ? standby : primary }
  /// Where packets are sent to.
  let address: String
  private let folder = TemporaryFolder()
  private let ports: [UInt16]
  private let replicas: Mutex<[Child?]>
  private let balancer = Mutex<Child?>(nil)

  init(count: Int, key: String) async throws {
    primary = try await PostgreSQLServer()
    standby = try await PostgreSQLServer(standbyOf: primary, named: "s1")
    try primary.set(["synchronous_standby_names = 'ANY 1 (s1)'"])
    try await primary.sql("SELECT pg_reload_conf()")
    ports = try (0..<count).map { _ in try Harness.freePort() }
    address = "127.0.0.1:\(try Harness.freePort())"
    replicas = Mutex([Child?](repeating: nil, count: count))
    try FileManager.default.copyItem(atPath: key, toPath: folder("main.key"))
    for index in 0..<count { mkdir(folder("state\(index)"), 0o700) }
    try folder.write(configuration, to: "haproxy.cfg")
    let started = try Child("/usr/sbin/haproxy", ["-db", "-f", folder("haproxy.cfg")], log: folder("haproxy.log"))
    balancer.withLock { $0 = started }
    for index in 0..<count { try await start(index) }
  }

  private var configuration: String {
    let servers = ports.enumerated().map { "  server c\($0) 127.0.0.1:\($1)\n" }.joined()
    return """
      defaults
        mode http
        timeout connect 10s
        timeout check 1s
        timeout client 600s
        timeout server 600s
        option redispatch
        retries 2
      frontend packets
        bind \(address)
        default_backend collectors
      backend collectors
        balance roundrobin
        option httpchk GET /readyz
        default-server check inter 200ms fall 1 rise 1 on-marked-down shutdown-sessions
      \(servers)
      """
  }

  func start(_ index: Int) async throws {
    let child = try Child(
      Programs.collector,
      [
        "--listen", "127.0.0.1:\(ports[index])", "--state", folder("state\(index)"), "--key",
        "main=\(folder("main.key"))",
        "--store", primary.uri(others: [standby]),
      ], log: folder("collector\(index).log"))
    replicas.withLock { $0[index] = child }
    try await waitUntil("replica \(index) answers", otherwise: child.lastWords) {
      guard child.isRunning else { throw Failed("the collector ended: \(child.lastWords)") }
      return try await Programs.run(
        "curl", ["-s", "-o", "/dev/null", "--max-time", "20", "http://127.0.0.1:\(ports[index])/healthz"]
      ).exitCode == 0
    }
  }

  func end(_ index: Int, _ signal: Int32) async throws {
    if let child = replicas.withLock({ $0[index] }) { try await child.end(signal) }
  }

  /// `SIGSTOP`: the replica hangs, with all that it holds; `SIGCONT`: it goes on.
  func signal(_ index: Int, _ signal: Int32) { replicas.withLock { $0[index]?.signal(signal) } }

  /// Kills the primary for good, and makes the standby the database.
  func failOver() async throws {
    await primary.signal(SIGKILL)
    // Its own standby is missing now.
    try await standby.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
    try await standby.sql("SELECT pg_promote()")
    isPromoted.withLock { $0 = true }
  }

  /// Since the last start of the database.
  func deadlocks() async throws -> Int {
    try await database.sql("SELECT sum(deadlocks) FROM pg_stat_database").first?.first.flatMap { Int($0) } ?? 0
  }

  var lastWords: String {
    replicas.withLock { $0.compactMap { $0?.lastWords }.joined(separator: "\n--\n") }
  }

  func stop() async {
    for child in replicas.withLock({ $0 }) + [balancer.withLock { $0 }] {
      if let child, child.isRunning { _ = try? await child.end(SIGKILL) }  // it is to be gone, however
    }
    for server in [primary, standby] { await server.signal(SIGKILL) }
  }
}
