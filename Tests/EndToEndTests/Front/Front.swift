import Foundation
import Glibc
import Synchronization

/// nginx with some servers, each on a port of its own.
final class Front: Sendable {
  let folder: String
  let ports: [UInt16]
  private let collector: String
  private let child = Mutex<Child?>(nil)

  init(_ harness: Harness, servers: Int) async throws {
    (folder, collector) = (harness.folder + "/front", harness.collectorAddress)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    ports = try (0..<servers).map { _ in try Harness.freePort() }
    let maker = CertificateMaker(folder: folder)
    try await maker.authority("ca")
    for (name, days) in [("server", 2), ("old", -1)] {
      try await maker.certificate(name, by: "ca", host: "IP:127.0.0.1", days: days)
    }
  }

  private var configuration: String { "\(folder)/nginx.conf" }

  /// - Parameter servers: lines of each; `COLLECTOR` is its address, `FOLDER` has the certificates.
  func write(_ servers: [(lines: String, isTLS: Bool)]) throws {
    let texts = zip(ports, servers).map { port, server in
      let tls = server.isTLS ? "ssl_certificate \(folder)/server.pem; ssl_certificate_key \(folder)/server.key;" : ""
      return "server { listen 127.0.0.1:\(port)\(server.isTLS ? " ssl" : ""); \(tls) \(server.lines) }"
    }
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(folder)/\($0);" }.joined(separator: " ")
    let text = """
      daemon off; master_process off; pid \(folder)/nginx.pid; error_log \(folder)/error.log;
      events { worker_connections 2048; }
      http { access_log off; \(temporary)
      \(texts.joined(separator: "\n"))
      }
      """
    try text.replacing("COLLECTOR", with: collector).replacing("FOLDER", with: folder)
      .write(toFile: configuration, atomically: true, encoding: .utf8)
  }

  func start() async throws {
    let started = try Child("/usr/sbin/nginx", ["-c", configuration, "-p", folder], log: "\(folder)/nginx.log")
    child.withLock { $0 = started }
    try await waitUntil("nginx serves") {
      guard started.isRunning else { throw Failed("nginx ended: \(started.lastWords)") }
      return try await Programs.run("nc", ["-z", "127.0.0.1", String(self.ports[0])]).exitCode == 0
    }
  }

  /// Another process takes the ports, so that no answer is of the old configuration.
  func restart() async throws {
    if let old = child.withLock({ $0 }) { try await old.end(SIGKILL) }
    try await start()
  }

  func stop() { child.withLock { $0 }?.signal(SIGKILL) }
}
