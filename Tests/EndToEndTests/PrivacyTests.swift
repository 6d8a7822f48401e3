import Foundation
import PrismProtocol
import Testing

/// Values that filters leave out are nowhere: not in the state, not in the logs, not on its way, not at the collector.
@Suite struct PrivacyTests {
  private static let secrets = ["ada.lovelace@example.com", "4929-1234-5678-9012", "+44 20 7946 0958"]
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    monitorList:
      - type: order
        redact: [{field: user.email, action: hash}, {field: card, action: drop}, {field: phones.*, action: mask}]
      - {type: trace, collapse: {by: [frame], second: 3600}}
    """

  private static func meta(_ number: Int, padding: Int = 0) -> String {
    let padding = String(repeating: "x", count: padding)
    return
      #"{"n":\#(number),"user":{"email":"\#(secrets[0])"},"card":"\#(secrets[1])","phones":["\#(secrets[2])"],"p":"\#(padding)"}"#
  }

  /// Files below the folder that hold one of the secrets.
  private static func leaks(_ harness: Harness) throws -> [String] {
    let files = FileManager.default.enumerator(atPath: harness.folder)?.allObjects as? [String] ?? []
    return files.filter { file in
      guard let data = FileManager.default.contents(atPath: "\(harness.folder)/\(file)") else { return false }
      return secrets.contains { data.range(of: Data($0.utf8)) != nil }
    }
  }

  private static func send(_ meta: String, _ harness: Harness) async throws -> Ran {
    try await harness.prismctl("send", "--namespace", "shop", "--type", "order", "--meta", meta)
  }

  /// Reports, kills the daemon, and delivers. - Returns: the hash of the address, as it arrived.
  private static func hash() async throws -> String {
    try await withHarness(namespaces: ["shop": shop], extra: "log: {level: debug}\n") { harness in
      try await harness.startDaemon()
      for number in 1...3 { #expect(try await send(meta(number), harness).exitCode == 0) }
      #expect(try await send(meta(4, padding: 10_240), harness).error.contains("meta_too_large"))
      #expect(try await harness.prismctl("export", "--namespace", "shop").lines.count == 3)
      #expect(try leaks(harness) == [])
      try await harness.endDaemon(SIGKILL)
      #expect(try leaks(harness) == [], "what a killed daemon leaves")
      try await harness.startCollector()
      try await harness.startDaemon()
      try await harness.waitUntilSent(["shop"])
      #expect(try leaks(harness) == [], "after the delivery")
      let rows = try await harness.query(
        """
        SELECT json_extract(meta, '$.user.email'), json_extract(meta, '$.card'), json_extract(meta, '$.phones[0]')
        FROM report WHERE namespace = 'shop'
        """)
      #expect(rows.count == 3 && Set(rows).count == 1)
      #expect(rows.first?[1] == "" && rows.first?[2] == "***")
      return rows.first?[0] ?? ""
    }
  }

  @Test(
    "a redacted value is in no file of daemon and collector; its hash is equal on one device and differs on another")
  func redacted() async throws {
    let (here, there) = (try await Self.hash(), try await Self.hash())
    #expect(here.count == 32 && there.count == 32 && here != there)
  }

  @Test("a flood of one stack trace becomes one row with its count, over kills of the daemon too")
  func flood() async throws {
    try await withHarness(namespaces: ["shop": "isUpload: false\n" + Self.shop]) { harness in
      for round in 0..<3 {
        try await harness.startDaemon()
        let line = #"{"namespace":"shop","type":"trace","meta":{"frame":"main+7","round":\#(round)}}"#
        let file = "\(harness.folder)/flood.ndjson"
        try String(repeating: line + "\n", count: 5000).write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try await harness.prismctl("send", "--ndjson", file).exitCode == 0)
        try await harness.endDaemon(SIGKILL)
      }
      try await harness.startDaemon()
      let counts = try await harness.prismctl("export", "--namespace", "shop").lines.map {
        try JSONValue(parsing: Array($0.utf8))["meta"]?["REPEAT_COUNT"]?.int
      }
      #expect(counts == [5000, 5000, 5000], "a start begins another row")
      let status = try await harness.status()
      #expect(status["namespaces"]?["shop"]?["collapsed"]?.int == 14_997)
      Harness.expectIdentity(status)
    }
  }
}
