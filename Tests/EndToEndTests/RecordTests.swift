import Foundation
import PrismProtocol
import PrismTestSupport
import Testing

/// Records from the ingest socket to the collector's table, with the programs as they are.
@Suite struct RecordTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    monitorList: [{type: order}]
    recordIntervalSecond: 1
    records:
      - {table: part}
      - {table: suit, references: {part: part}}
    """

  private static func ask(_ harness: Harness, _ words: String...) async throws -> (code: Int32, output: String) {
    let place = ["--namespace", "shop", "--table"]
    let ran = try await harness.prismctl(["record", words[0]] + place + words.dropFirst())
    return (ran.exitCode, ran.output + ran.error)
  }

  private static func server(_ harness: Harness) async throws -> [[String]] {
    try await harness.query("SELECT tab, id, fields FROM records ORDER BY tab, id")
  }

  private static func becomes(_ harness: Harness, _ rows: [[String]]) async throws -> Bool {
    for _ in 0..<600 {
      if try await server(harness) == rows { return true }
      try await Task.sleep(for: .milliseconds(50))
    }
    return false
  }

  @Test("puts, patches and deletions reach the collector, with its ids in place of references, over kills of both")
  func endToEnd() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      #expect(try await Self.ask(harness, "put", "part", "a", #"{"n":1}"#).code == 0)
      #expect(try await Self.ask(harness, "put", "suit", "s", #"{"part":"a","n":1}"#).code == 0)
      try await harness.endDaemon(SIGKILL)
      try await harness.startCollector()
      try await harness.startDaemon()
      #expect(try await Self.becomes(harness, [["part", "a", #"{"n":1}"#], ["suit", "s", #"{"part":"1","n":1}"#]]))
      #expect(try await Self.ask(harness, "patch", "part", "a", #"{"n":2,"m":[]}"#).code == 0)
      #expect(try await Self.ask(harness, "delete", "suit", "s").code == 0)
      #expect(try await Self.becomes(harness, [["part", "a", #"{"n":2,"m":[]}"#]]))
      let record = try await Self.ask(harness, "get", "part", "1", "--json")
      #expect(try JSONValue(parsing: record.output)["id"] == "a" && record.code == 0)
      let missing = try await Self.ask(harness, "put", "suit", "t", #"{"part":"none"}"#)
      #expect(missing.code == 1 && missing.output.contains("reference_missing"))
      let unknown = try await Self.ask(harness, "put", "car", "t", "{}")
      #expect(unknown.code == 1 && unknown.output.contains("unknown_table") && unknown.output.contains("part, suit"))
    }
  }
}
