import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

/// Authorities, client certificates and packet keys that change on both sides while the daemon runs.
@Suite(.timeLimit(.minutes(30)))
struct TLSRotationTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    tls: {caFile: ca.pem, certFile: client.pem, keyFile: client.key}
    monitorList: [{type: sample}]
    """

  /// A collector with the certificate `server`, for clients of the authority `clients`.
  private func startCollector(_ harness: Harness, server: String, clients: String) async throws {
    try await harness.endCollector(SIGTERM)
    let file = "\(harness.folder)/collector.yaml"
    let files = "certFile: made/\(server).pem, keyFile: made/\(server).key, clientCAFile: made/\(clients).pem"
    try "tls: {\(files)}\n".write(toFile: file, atomically: true, encoding: .utf8)
    try await harness.startCollector(["--config", file])
  }

  /// Puts what was made in the place that the daemon reads, as a tool does: all of it or nothing.
  private func install(_ harness: Harness, _ made: String, as name: String) throws {
    let next = "\(harness.folder)/\(name).next"
    try FileManager.default.copyItem(atPath: "\(harness.folder)/made/\(made)", toPath: next)
    chmod(next, 0o600)
    rename(next, "\(harness.folder)/\(name)")
  }

  private func makeCertificates(_ folder: String) async throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let maker = CertificateMaker(folder: folder)
    for number in 1...2 {
      for authority in ["servers", "clients"] { try await maker.authority("\(authority)\(number)") }
      try await maker.certificate("server\(number)", by: "servers\(number)", host: "IP:127.0.0.1", days: 2)
      try await maker.certificate("client\(number)", by: "clients\(number)", host: "DNS:device", days: 2)
    }
    let key = try await Programs.run(Programs.prismctl, ["keys", "new", "\(folder)/second.key"])
    try #require(key.exitCode == 0, "\(key.error)")
  }

  private func send(_ harness: Harness, _ number: Int) async throws {
    _ = try await harness.client().report(Sample.report(number, in: "shop"))
  }

  private func expectArrived(_ harness: Harness, _ count: Int) async throws {
    try await waitUntil("\(count) have arrived", otherwise: harness.daemonLog) {
      try await harness.arrived("shop", "meta").map(\.number).sorted() == Array(1...count)
    }
  }

  /// - Parameter before: the failure that was known before this one.
  private func expectFailure(_ harness: Harness, _ words: String, after before: JSONValue? = nil) async throws {
    var last: JSONValue?
    try await waitUntil("a failure for \(words)", otherwise: "it is \(last?.text ?? "")") {
      last = try await lastFailure(harness)
      return last?["cause"]?.string?.contains(words) == true && last?["time"] != before?["time"]
    }
  }

  private func lastFailure(_ harness: Harness) async throws -> JSONValue? {
    try await harness.status()["namespaces"]?["shop"]?["lastFailure"]
  }

  private func expectFaults(_ harness: Harness, _ words: String?) async throws {
    try await waitUntil("faults: \(words ?? "none")", otherwise: harness.daemonLog) {
      let faults = try await harness.status()["configFaults"]?.array ?? []
      return words.map { words in faults.contains { $0.string?.contains(words) == true } } ?? faults.isEmpty
    }
  }

  @Test("a new CA, a new client certificate and a new packet key are in use by themselves, and what waited goes out")
  func rotation() async throws {
    try await withHarness(namespaces: ["shop": Self.shop], isTLS: true) { harness in
      try await makeCertificates("\(harness.folder)/made")
      try install(harness, "servers1.pem", as: "ca.pem")
      try install(harness, "client1.pem", as: "client.pem")
      try install(harness, "client1.key", as: "client.key")
      try await startCollector(harness, server: "server1", clients: "clients1")
      try await harness.startDaemon()
      try await send(harness, 1)
      try await expectArrived(harness, 1)

      try await startCollector(harness, server: "server2", clients: "clients1")
      try await send(harness, 2)
      try await expectFailure(harness, "certificate")
      try install(harness, "servers2.pem", as: "ca.pem")
      try await expectArrived(harness, 2)

      let before = try await lastFailure(harness)
      try await startCollector(harness, server: "server2", clients: "clients2")
      try await send(harness, 3)
      try await expectFailure(harness, "401", after: before)
      try install(harness, "client2.pem", as: "client.pem")
      // One half of the pair is not taken; the fault names both files.
      try await expectFaults(harness, "client.key beside the certificate \(shownEnd("\(harness.folder)/client.pem"))")
      try install(harness, "client2.key", as: "client.key")
      try await expectArrived(harness, 3)
      try await expectFaults(harness, nil)

      try await rotateKey(harness)
    }
  }

  /// The key `main` has other digits from now on: a row that waited for the collector goes out with them.
  private func rotateKey(_ harness: Harness) async throws {
    try await harness.endCollector(SIGTERM)
    let before = try await lastFailure(harness)
    try await send(harness, 4)
    try await expectFailure(harness, "connect", after: before)
    let generation = try await harness.generation()
    try install(harness, "second.key", as: "main.key")
    try await waitUntil("the new key is in force") {
      try await harness.generation() > generation
    }
    try await startCollector(harness, server: "server2", clients: "clients2")
    try await expectArrived(harness, 4)
  }

  private func shownEnd(_ path: String) -> String { path.count > 60 ? "..." + path.suffix(57) : path }
}
