import Foundation
import Glibc
import Synchronization

/// nginx or haproxy with some servers, each on a port of its own.
final class Front: Sendable {
  enum Program: String {
    case nginx, haproxy
    var path: String { "/usr/sbin/\(rawValue)" }
  }

  let folder: String
  private let program: Program
  let ports: [UInt16]
  private let collector: String
  private let child = Mutex<Child?>(nil)

  init(_ program: Program, _ harness: Harness, servers: Int) async throws {
    (folder, collector) = ("\(harness.folder)/\(program)", harness.collectorAddress)
    self.program = program
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    ports = try (0..<servers).map { _ in try Harness.freePort() }
    let maker = CertificateMaker(folder: folder)
    try await maker.authority("ca")
    try await maker.authority("portal-ca")
    for (name, authority, days) in [("server", "ca", 2), ("old", "ca", -1), ("portal", "portal-ca", 2)] {
      try await maker.certificate(name, by: authority, host: "IP:127.0.0.1", days: days)
    }
  }

  private var configuration: String { "\(folder)/\(program).conf" }

  /// - Parameter servers: lines of each, and the name of its certificate; `COLLECTOR` is its address, `FOLDER` has the
  ///   certificates.
  func write(_ servers: [(lines: String, certificate: String?)]) throws {
    let text = program == .nginx ? nginx(servers) : haproxy(servers.map(\.lines))
    try text.replacing("COLLECTOR", with: collector).replacing("FOLDER", with: folder)
      .write(toFile: configuration, atomically: true, encoding: .utf8)
  }

  /// As that of docs/scale.md, but with a backend for each port.
  private func haproxy(_ servers: [String]) -> String {
    let texts = zip(ports, servers).map { port, lines in
      "listen p\(port)\n  bind 127.0.0.1:\(port)\n  option http-buffer-request\n  timeout http-request 30s\n"
        + lines.split(separator: ";").map { "  \($0)\n" }.joined()
    }
    return "defaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n" + texts.joined()
  }

  private func nginx(_ servers: [(lines: String, certificate: String?)]) -> String {
    let texts = zip(ports, servers).map { port, server in
      let tls = server.certificate.map {
        "ssl_certificate \(folder)/\($0).pem; ssl_certificate_key \(folder)/\($0).key;"
      }
      return "server { listen 127.0.0.1:\(port)\(tls == nil ? "" : " ssl"); \(tls ?? "") \(server.lines) }"
    }
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(folder)/\($0);" }.joined(separator: " ")
    return """
      daemon off; master_process off; pid \(folder)/nginx.pid; error_log \(folder)/error.log;
      events { worker_connections 2048; }
      http { access_log off; \(temporary)
      \(texts.joined(separator: "\n"))
      }
      """
  }

  func start() async throws {
    let words = program == .nginx ? ["-c", configuration, "-p", folder] : ["-db", "-f", configuration]
    let started = try Child(program.path, words, log: "\(folder)/\(program).log")
    child.withLock { $0 = started }
    try await waitUntil("\(program) serves") {
      guard started.isRunning else { throw Failed("\(self.program) ended: \(started.lastWords)") }
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
