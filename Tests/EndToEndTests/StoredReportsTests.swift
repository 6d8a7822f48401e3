import PrismOutputs
import PrismProtocol
import Testing

/// The operations on stored reports that operators have, by the programs as they are.
@Suite struct StoredReportsTests {
  private static let shop = "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: order}]\n"

  private func send(_ ids: [String], _ harness: Harness) async throws {
    for id in ids {
      let sent = try await harness.prismctl(
        "send", "--namespace", "shop", "--type", "order", "--meta", #"{"a":1}"#, "--report-id", id)
      #expect(sent.exitCode == 0, "\(sent.error)")
    }
  }

  private func held(_ harness: Harness) async throws -> [String?] {
    try await harness.prismctl("export", "--namespace", "shop").lines.map {
      try JSONValue(parsing: Array($0.utf8))["meta"]?["REPORT_ID"]?.string
    }
  }

  private func places(_ id: String, _ harness: Harness) async throws -> [String?] {
    let ran = try await harness.prismctl("trace", id, "--json")
    guard ran.exitCode == 0 else { return [] }
    return try JSONValue(parsing: Array(ran.output.utf8))["rows"]?.array?.map { $0["state"]?.string } ?? []
  }

  @Test("traced, exported, removed by number, age and id, and delivered; no number that is given ends the daemon")
  func commands() async throws {
    try await withHarness(namespaces: ["shop": "isUpload: false\n" + Self.shop]) { harness in
      try await harness.startDaemon()
      let ids = (1...6).map { "r\($0)" }
      try await send(ids, harness)
      #expect(try await harness.prismctl("explain", "shop").output.contains("order meta: isUpload: "))
      #expect(try await held(harness) == ids)
      #expect(try await places("r3", harness) == ["waiting"])
      for (option, value, removed) in [
        ("--report-id", "r3", 1), ("--oldest", "1", 1), ("--latest", "1", 1), ("--report-id", "r3", 0),
        ("--before-days", "\(Int.max)", 0), ("--oldest", "0", 0),
      ] {
        let ran = try await harness.prismctl("remove", "--namespace", "shop", option, value, "--yes")
        #expect(ran.output == "removed \(removed)\n", "\(option) \(value): \(ran.output)\(ran.error)")
      }
      #expect(try await held(harness) == ["r2", "r4", "r5"])
      try harness.write(Self.shop, namespace: "shop")
      try await harness.startCollector()
      try await harness.reload()
      try await harness.waitUntilSent(["shop"])
      #expect(try await places("r4", harness) == ["delivered"])
      #expect(try await places("r3", harness) == ["dropped"])
      let status = try await harness.status()
      #expect(Harness.rows(status, "shop", "meta", "removed") == 3)
      #expect(Harness.rows(status, "shop", "meta", "delivered") == 3)
      Harness.expectIdentity(status)
    }
  }
}
