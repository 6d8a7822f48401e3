import Foundation
import PrismProtocol
import PrismTestSupport
import Testing

/// Records that the server changes, from `prism-collector record` to a program on the device, with the programs as they are.
@Suite struct RecordDownTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    monitorList: [{type: order}]
    recordIntervalSecond: 1
    records:
      - {table: product, direction: down, scope: fleet}
      - {table: setting, direction: both}
    """

  /// At the collector.
  private static func change(_ harness: Harness, _ table: String, _ words: String...) async throws {
    let ran = try await Programs.run(
      Programs.collector,
      ["record"] + words + [
        "--namespace", "shop", "--table", table, "--key", "main=\(harness.folder)/main.key", "--state",
        harness.collectorState,
      ])
    try #require(ran.exitCode == 0, "\(ran.error)")
  }

  /// On the device: the fields, or nil.
  private static func fields(_ harness: Harness, _ table: String, _ id: String) async throws -> String? {
    let ran = try await harness.prismctl(["record", "get", "--namespace", "shop", "--table", table, id, "--json"])
    return try? JSONValue(parsing: ran.output)["fields"]?.text
  }

  private static func becomes(
    _ harness: Harness, _ table: String, _ id: String, _ fields: String?
  ) async throws {
    try await waitUntil("\(table) \(id) is \(fields ?? "gone")") {
      try await Self.fields(harness, table, id) == fields
    }
  }

  @Test("a device learns the fleet's records and those that both sides change, over a kill of the collector")
  func endToEnd() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startCollector()
      try await Self.change(harness, "product", "put", "sku-1", #"{"price":40}"#)
      try await harness.startDaemon()
      try await Self.becomes(harness, "product", "sku-1", #"{"price":40}"#)
      try await Self.change(harness, "product", "patch", "sku-1", #"{"price":41}"#)
      try await Self.becomes(harness, "product", "sku-1", #"{"price":41}"#)
      let put = ["record", "put", "--namespace", "shop", "--table", "setting", "theme", #"{"dark":true}"#]
      #expect(try await harness.prismctl(put).exitCode == 0)
      try await waitUntil("the collector has the setting") {
        try await harness.query("SELECT fields FROM records WHERE tab = 'setting'") == [[#"{"dark":true}"#]]
      }
      let device = try #require(
        try await harness.query("SELECT device FROM records WHERE tab = 'setting'").first?.first)
      try await harness.endCollector(SIGKILL)
      try await Self.change(harness, "setting", "put", "theme", #"{"dark":false}"#, "--device", device)
      try await Self.change(harness, "setting", "put", "font", #"{"size":9}"#, "--device", device)
      try await Self.change(harness, "product", "delete", "sku-1")
      try await harness.startCollector()
      try await Self.becomes(harness, "setting", "theme", #"{"dark":false}"#)
      try await Self.becomes(harness, "setting", "font", #"{"size":9}"#)
      try await Self.becomes(harness, "product", "sku-1", nil)
    }
  }

  @Test("a collector that is restored from a backup gets the records that it had lost, without a new change")
  func restored() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      func put(_ id: String) async throws {
        let put = ["record", "put", "--namespace", "shop", "--table", "setting", id, #"{"n":1}"#]
        #expect(try await harness.prismctl(put).exitCode == 0)
      }
      func hasRecords(_ ids: [String]) async throws {
        try await waitUntil("the collector has \(ids)") {
          try await harness.query("SELECT id FROM records WHERE tab = 'setting' ORDER BY id") == ids.map { [$0] }
        }
      }
      try await harness.startCollector()
      try await harness.startDaemon()
      try await put("a")
      try await hasRecords(["a"])
      try await harness.endCollector(SIGTERM)
      let (state, backup) = (harness.collectorState, harness.folder + "/backup")
      try FileManager.default.createDirectory(atPath: backup, withIntermediateDirectories: false)
      func copy(from: String, to: String) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: from) where name.contains(".db") {
          try? FileManager.default.removeItem(atPath: "\(to)/\(name)")
          try FileManager.default.copyItem(atPath: "\(from)/\(name)", toPath: "\(to)/\(name)")
        }
      }
      try copy(from: state, to: backup)
      try await harness.startCollector()
      for id in ["b", "c"] { try await put(id) }
      try await hasRecords(["a", "b", "c"])
      try await harness.endCollector(SIGTERM)
      try copy(from: backup, to: state)
      try await harness.startCollector()
      try await hasRecords(["a", "b", "c"])
      for id in ["a", "b", "c"] { try await Self.becomes(harness, "setting", id, #"{"n":1}"#) }
    }
  }
}
