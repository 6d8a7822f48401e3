import Foundation
import Glibc
import PrismClient
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

/// A daemon and a collector of a test's own, as programs, in a folder of their own.
final class Harness: Sendable {
  let folder: String
  /// Of the collector, on loopback unless it lives in a network of its own.
  let collectorAddress: String
  /// Words before the program's name: `ip netns exec …`, say.
  private let daemonPrefix: [String]
  private let collectorPrefix: [String]
  private let daemon = Mutex<Child?>(nil)
  private let collector = Mutex<Child?>(nil)

  var config: String { "\(folder)/prismd.yaml" }
  var ingest: String { "\(folder)/ingest.sock" }
  var control: String { "\(folder)/control.sock" }
  var collectorState: String { "\(folder)/collector" }
  /// Where the collector's owner reads.
  var readerSocket: String { "\(collectorState)/reader.sock" }
  let isTLS: Bool
  var url: String { "\(isTLS ? "https" : "http")://\(collectorAddress)" }

  /// - Parameter namespaces: name to YAML; `URL` is the collector's address.
  /// - Parameter extra: more lines of prismd.yaml.
  init(
    namespaces: [String: String], extra: String = "", collectorAddress: String? = nil, daemonPrefix: [String] = [],
    collectorPrefix: [String] = [], isTLS: Bool = false
  ) async throws {
    self.isTLS = isTLS
    folder = TemporaryFolder.make()
    (self.daemonPrefix, self.collectorPrefix) = (daemonPrefix, collectorPrefix)
    self.collectorAddress = try collectorAddress ?? "127.0.0.1:\(Self.freePort())"
    for path in ["namespaces.d", "collector", "state"] {
      try FileManager.default.createDirectory(
        atPath: "\(folder)/\(path)", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    let made = try await Programs.run(Programs.prismctl, ["keys", "new", "\(folder)/main.key"])
    #expect(made.exitCode == 0, "\(made.error)")
    try writeDaemonFile(extra)
    for (name, text) in namespaces { try write(text, namespace: name) }
  }

  /// - Parameter extra: in flow style, `ingest` and the others with `$ingest` in front of what is theirs.
  func writeDaemonFile(_ extra: String) throws {
    var lines = ["ingest": "socket: \(ingest)", "control": "socket: \(control)"]
    if !extra.contains("device:") { lines["device"] = "id: e2e-device" }
    var rest: [Substring] = []
    for line in extra.split(separator: "\n") {
      guard line.first == "$", let colon = line.firstIndex(of: ":") else {
        rest.append(line)
        continue
      }
      lines[String(line[..<colon].dropFirst())]! += ", \(line[line.index(after: colon)...])"
    }
    // Across a network of the test's own.
    let plain = collectorAddress.hasPrefix("127.") || isTLS ? "" : "allowPlain: true\n"
    let text =
      plain
      + lines.sorted { $0.key < $1.key }.map { "\($0.key): {\($0.value)}\n" }.joined()
      + "state: \(folder)/state\nkeys: [{id: main, file: main.key}]\n" + rest.joined(separator: "\n") + "\n"
    try text.write(toFile: config, atomically: true, encoding: .utf8)
  }

  func write(_ text: String, namespace: String) throws {
    try text.replacing("URL", with: url)
      .write(toFile: "\(folder)/namespaces.d/\(namespace).yaml", atomically: true, encoding: .utf8)
  }

  private static let nextPort = Mutex(20_000 + UInt16(getpid() % 1_000) * 12)

  /// A free port, below those that the kernel gives to a program that asks for any port. Else a client's connection, or
  /// another test, has it when a program that was killed listens there again.
  static func freePort() throws -> UInt16 {
    for _ in 0..<1_000 {
      let port = nextPort.withLock { port in
        defer { port = port < 32_000 ? port + 1 : 20_000 }
        return port
      }
      if isFree(port) { return port }
    }
    throw Failed("no free port from 20000 to 32000")
  }

  private static func isFree(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  // MARK: The programs

  /// - Parameter more: flags beside those that it always has.
  func startCollector(_ more: [String] = []) async throws {
    let arguments = ["--listen", collectorAddress, "--key", "main=\(folder)/main.key", "--state", collectorState]
    let command = collectorPrefix + [Programs.collector] + arguments + more
    let child = try start(command, log: "collector.log")
    collector.withLock { $0 = child }
    try await waitUntil("the collector serves") {
      guard child.isRunning else { throw Failed("the collector ended: \(child.lastWords)") }
      let probe = ["-s", "-k", "-o", "/dev/null", "--max-time", patience.secondsText, "\(self.url)/healthz"]
      let code = try await Programs.run("env", self.collectorCommand(["curl"] + probe)).exitCode
      return self.isTLS ? code != 7 : code == 0  // over TLS it may ask for a certificate that curl has not
    }
  }

  /// The words of a command that runs where the collector does.
  func collectorCommand(_ words: [String]) -> [String] { collectorPrefix + words }

  func startDaemon() async throws {
    let child = try start(daemonPrefix + [Programs.prismd, "--config", config], log: "prismd.log")
    daemon.withLock { $0 = child }
    try await waitUntil("prismd takes reports") {
      guard child.isRunning else { throw Failed("prismd ended: \(child.lastWords)") }
      return try await self.prismctl("status", "--json").exitCode == 0
    }
  }

  /// nil before its start.
  var daemonProcess: Int32? { daemon.withLock { $0?.identifier } }

  var collectorProcess: Int32? { collector.withLock { $0?.identifier } }

  var daemonLog: String { (try? String(contentsOfFile: "\(folder)/prismd.log", encoding: .utf8)) ?? "" }

  func signalDaemon(_ number: Int32) { daemon.withLock { $0 }?.signal(number) }

  func endDaemon(_ signal: Int32) async throws {
    if let child = daemon.withLock({ $0 }) { try await child.end(signal) }
  }

  func endCollector(_ signal: Int32) async throws {
    if let child = collector.withLock({ $0 }) { try await child.end(signal) }
  }

  private func start(_ command: [String], log: String) throws -> Child {
    try command[0].hasPrefix("/")
      ? Child(command[0], Array(command.dropFirst()), log: "\(folder)/\(log)")
      : Child("/usr/bin/env", command, log: "\(folder)/\(log)")
  }

  /// Ends what runs, and removes the folder.
  func stop() async {
    for child in [daemon.withLock { $0 }, collector.withLock { $0 }] {
      if let child, child.isRunning { _ = try? await child.end(SIGKILL) }  // it is to be gone, however
    }
    try? FileManager.default.removeItem(atPath: folder)  // a left folder harms no test
  }

  // MARK: Asking

  func client() -> PrismClient { PrismClient(socket: ingest, answerTimeout: patience) }

  func prismctl(_ words: String...) async throws -> Ran { try await prismctl(words) }

  func prismctl(_ words: [String]) async throws -> Ran {
    try await Programs.run(
      Programs.prismctl, words, environment: ["PRISM_CONTROL": control, "PRISM_INGEST": ingest])
  }

  /// How the programs are, for a test's message.
  var diagnosis: String {
    get async {
      let children = [daemon.withLock { $0 }, collector.withLock { $0 }].compactMap { $0 }
      let words = children.map { "\($0.name) \($0.isRunning ? "runs" : "ended"): \($0.lastWords)" }
      let status = try? await prismctl("status")  // it may be what is broken
      return (words + [status.map { $0.output + $0.error } ?? "no status"]).joined(separator: "\n")
    }
  }

  func status() async throws -> JSONValue {
    let ran = try await prismctl("status", "--json")
    guard ran.exitCode == 0 else { throw Failed("prismctl status: \(ran.error); \(await diagnosis)") }
    return try JSONValue(parsing: Array(ran.output.utf8))
  }
}

/// Runs `body` with a harness that is gone afterwards, even after an error.
func withHarness<T>(
  namespaces: [String: String], extra: String = "", daemonPrefix: [String] = [], isTLS: Bool = false,
  _ body: (Harness) async throws -> T
) async throws -> T {
  let harness = try await Harness(namespaces: namespaces, extra: extra, daemonPrefix: daemonPrefix, isTLS: isTLS)
  do {
    let result = try await body(harness)
    await harness.stop()
    return result
  } catch {
    await harness.stop()
    throw error
  }
}
