import Foundation
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// Watches of a table and records over HTTP, with the programs as they are.
@Suite struct RecordWatchTests {
  private static let (shop, part) = (NamespaceName("shop")!, RecordTableName("part")!)
  private static let files = """
    url: URL
    monitorList: [{type: order}]
    recordIntervalSecond: 3600
    records: [{table: part}]
    """

  private static func curl(_ harness: Harness, _ words: String...) async throws -> String {
    let place = ["curl", "-s", "--unix-socket", harness.ingest]
    let ran = try await Programs.run("env", place + words.dropLast() + ["http://prism/v1/records/\(words.last!)"])
    return ran.output
  }

  @Test("a watch goes on over a kill; changes by HTTP and by the command are sent, and flush --wait sends them")
  func watches() async throws {
    try await withHarness(namespaces: ["shop": Self.files]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let client = PrismClient(socket: harness.ingest)
      var changes = client.changes(of: Self.part, in: Self.shop).makeAsyncIterator()
      let beginning = await changes.next()
      #expect(beginning?.generation == 0 && beginning?.ids == nil)
      let put = try await Self.curl(harness, "-X", "PUT", "-d", #"{"n":1}"#, "part/a?namespace=shop")
      #expect(try JSONValue(parsing: put)["version"] == 1)
      let first = await changes.next()
      #expect(first?.generation == 1 && first?.ids ?? [RecordID("a")!] == [RecordID("a")!])
      try await harness.endDaemon(SIGKILL)
      try await harness.startDaemon()
      let words = ["record", "put", "--namespace", "shop", "--table", "part", "b", "{}"]
      #expect(try await harness.prismctl(words).exitCode == 0)
      let second = await changes.next()
      #expect(second?.generation == 2)
      let flushed = try await harness.prismctl(["flush", "--wait", "--timeout", "60"])
      #expect(flushed.exitCode == 0, "\(flushed.error)")
      let rows = try await harness.query("SELECT id, fields FROM records ORDER BY id")
      #expect(rows == [["a", #"{"n":1}"#], ["b", "{}"]])
      let polled = try await Self.curl(harness, "-H", #"If-None-Match: "1""#, "part?namespace=shop&wait=60")
      #expect(try JSONValue(parsing: polled)["generation"] == 2)
    }
  }

  @Test("record watch prints the state and each change, and refuses a table that is not declared") func prints()
    async throws
  {
    try await withHarness(namespaces: ["shop": Self.files]) { harness in
      try await harness.startDaemon()
      let place = ["--namespace", "shop", "--table", "part", "--ingest", harness.ingest]
      let unknown = try await harness.prismctl(["record", "watch", "--namespace", "shop", "--table", "car"])
      #expect(unknown.exitCode == 1 && unknown.error.contains("unknown_table"))
      let script = """
        "$0" record watch --json "$@" >watched & watch=$!
        until grep -q '"generation":0' watched; do sleep 0.05; done
        "$0" record put "$@" a '{}' >/dev/null
        until grep -q '"ids":\\["a"\\]' watched; do sleep 0.05; done
        kill $watch; cat watched
        """
      let ran = try await Programs.run(
        "env", ["-C", harness.folder, "timeout", "60", "sh", "-c", script, Programs.prismctl] + place)
      #expect(ran.output == #"{"generation":0}"# + "\n" + #"{"generation":1,"ids":["a"]}"# + "\n", "\(ran.error)")
    }
  }
}
