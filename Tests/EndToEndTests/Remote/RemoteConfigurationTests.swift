import Foundation
import Glibc
import PrismClient
import PrismPacket
import PrismProtocol
import Testing

/// prismd against prism-collector, as programs.
@Suite(.timeLimit(.minutes(30)))
struct RemoteConfigurationTests {
  private static let shop = "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample}]\n"
  private static let pay = "# served remotely\nurl: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample}]\n"

  /// The daemon asks the collector, which serves the folder `remote.d`, signed.
  /// - Parameter hasToken: the collector asks for a token, as it must to know its devices.
  private static func withRemote(
    hasToken: Bool = false, _ body: (Harness) async throws -> Void
  ) async throws {
    try await withHarness(namespaces: ["shop": shop]) { harness in
      try "sender-token-of-tests\n".write(toFile: "\(harness.folder)/tokens", atomically: true, encoding: .utf8)
      chmod("\(harness.folder)/tokens", 0o600)
      if hasToken {
        try harness.write(shop + "authorization: {tokenFile: \(harness.folder)/tokens}\n", namespace: "shop")
      }
      let pem = "\(harness.folder)/signing.pem"
      let made = try await Programs.run("openssl", ["genpkey", "-algorithm", "ed25519", "-out", pem])
      try #require(made.exitCode == 0, "\(made.error)")
      let shown = try await Programs.run(
        "sh", ["-c", "openssl pkey -in '\(pem)' -pubout -outform DER | tail -c 32 | base64"])
      let key = try #require(shown.lines.first)
      let token = hasToken ? ", tokenFile: \"\(harness.folder)/tokens\"" : ""
      let remote = "url: \"\(harness.url)/prism/config\", publicKey: \"\(key)\"\(token)"
      try harness.writeDaemonFile("remote: {\(remote), allow: [url, monitorList, maxItem, periodicTimerSecond]}")
      try FileManager.default.createDirectory(
        atPath: "\(harness.folder)/remote.d", withIntermediateDirectories: false)
      try await body(harness)
    }
  }

  private static func start(_ harness: Harness, hasToken: Bool = false) async throws {
    try await harness.startCollector(
      ["--remote-config", "\(harness.folder)/remote.d", "--signing-key", "\(harness.folder)/signing.pem"]
        + (hasToken ? ["--token-file", "\(harness.folder)/tokens"] : []))
    try await harness.startDaemon()
  }

  private static func serve(_ harness: Harness, _ name: String, _ text: String) throws {
    try text.replacing("URL", with: harness.url)
      .write(toFile: "\(harness.folder)/remote.d/\(name).yaml", atomically: true, encoding: .utf8)
  }

  /// Reports to `shop` until `condition` holds: each packet's answer names the version that there is.
  private static func reportUntil(
    _ what: String, _ harness: Harness, _ condition: (JSONValue) async throws -> Bool
  ) async throws {
    let client = harness.client()
    var number = 1000
    try await waitUntil(what) {
      _ = try await client.report(Sample.report(number, in: "shop"))
      number += 1
      return try await condition(try await harness.status()["remote"] ?? .null)
    }
  }

  @Test("a namespace that comes remotely takes reports at once, changes, goes, and outlives a start without the server")
  func lifeOfANamespace() async throws {
    try await Self.withRemote { harness in
      try Self.serve(harness, "pay", Self.pay)
      try await Self.start(harness)
      try await waitUntil("pay has come") {
        try await harness.status()["remote"]?["namespaces"] == ["pay"]
      }
      let client = harness.client()
      for number in 0..<3 { _ = try await client.report(Sample.report(number, in: "pay")) }
      try await harness.waitUntilSent(["pay"])
      try await harness.expectArrived("pay", "meta", [0, 1, 2])

      try Self.serve(harness, "pay", Self.pay + "maxItem: 7\n")
      try await Self.reportUntil("maxItem has changed", harness) { _ in
        try await harness.inForce("maxItem", of: "pay") == 7
      }
      let shown = try await harness.prismctl("config", "show", "--origin")
      #expect(shown.output.contains("maxItem: 7  # remote"))

      // The next start has no server, and the configuration that it got last.
      try await harness.endDaemon(SIGTERM)
      try await harness.endCollector(SIGTERM)
      try await harness.startDaemon()
      #expect(try await harness.inForce("maxItem", of: "pay") == 7)
      _ = try await harness.client().report(Sample.report(3, in: "pay"))

      try "retired: true\n".write(
        toFile: "\(harness.folder)/remote.d/pay.yaml", atomically: true, encoding: .utf8)
      try await harness.startCollector([
        "--remote-config", "\(harness.folder)/remote.d", "--signing-key", "\(harness.folder)/signing.pem",
      ])
      try await Self.reportUntil("pay is gone", harness) { $0["namespaces"] == [] }
      #expect(try await harness.status()["namespaces"]?["pay"]?["state"] == "retired")
      let refused = try await harness.prismctl("send", "--type", "sample", "--namespace", "pay", "--meta", "{}")
      #expect(refused.exitCode != 0 && (refused.output + refused.error).contains("unknown_namespace"))
    }
  }

  @Test("what the operator doesn't allow is refused by name, here and in what the server learns; the rest stays")
  func refusal() async throws {
    try await Self.withRemote(hasToken: true) { harness in
      try Self.serve(harness, "shop", "maxItem: 9\n")
      try await Self.start(harness, hasToken: true)
      try await Self.reportUntil("maxItem has changed", harness) { _ in
        try await harness.inForce("maxItem", of: "shop") == 9
      }
      try Self.serve(harness, "shop", "maxItem: 8\nisUpload: false\n")
      let reason = "remote: shop.isUpload: is not granted; remote.allow of prismd.yaml lists what is"
      try await Self.reportUntil("it is refused", harness) { $0["lastFailed"]?["reason"]?.string == reason }
      #expect(try await harness.inForce("maxItem", of: "shop") == 9)
      #expect(try await harness.prismctl("status").output.contains("shop.isUpload: is not granted"))
      try Self.serve(harness, "shop", "maxItem: 7\nisUpload: false\n")
      try await waitUntil("the server knows") {
        _ = try await harness.client().report(Sample.report(1, in: "shop"))
        let page = try await Programs.run(
          "curl",
          [
            "-s", "--unix-socket", harness.readerSocket, "http://prism/devices?failed=true",
          ])
        let device = try JSONValue(parsing: Array(page.output.utf8))["devices"]?.array?.first
        return device?["device"] == "e2e-device" && device?["reason"]?.string == reason
      }
      let metrics = try await Programs.run("curl", ["-s", "\(harness.url)/metrics"])
      #expect(metrics.output.contains("prism_collector_config_devices_failed 1"))
      try Self.serve(harness, "shop", "maxItem: 6\n")
      try await Self.reportUntil("the next one is taken", harness) { $0["lastFailed"] == .null }
      #expect(try await harness.inForce("maxItem", of: "shop") == 6)
    }
  }

  @Test("a start waits for no answer: the daemon is ready while its first question waits, and takes the answer later")
  func heldAnswer() async throws {
    let server = try HeldAnswer()
    defer { server.stop() }
    try await withHarness(
      namespaces: ["shop": Self.shop], extra: "remote: {url: \"http://127.0.0.1:\(server.port)\"}"
    ) { harness in
      try await harness.startDaemon()
      try await waitUntil("the question is there") { server.waiting == 1 }
      // No answer was given yet.
      #expect(try await harness.status()["remote"]?["state"] == "asking")
      _ = try await harness.client().report(Sample.report(1, in: "shop"))
      let log = try String(contentsOfFile: "\(harness.folder)/prismd.log", encoding: .utf8)
      #expect(log.contains("takes reports"))
      let document = #"{"namespaces":[{"name":"shop","maxItem":3}],"updateTime":1,"full":true}"#
      server.answer(try RemoteEnvelope.seal(Array(document.utf8), key: nil))
      try await waitUntil("the answer is in force") {
        try await harness.inForce("maxItem", of: "shop") == 3
      }
    }
  }
}
