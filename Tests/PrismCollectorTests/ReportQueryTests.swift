import Foundation
import PrismBase
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("prism-collector query")
struct ReportQueryTests {
  private static func ask(_ options: CollectorOptions, _ given: [(String, String)]) async throws -> String {
    var (query, bytes) = (ReportQuery(), [UInt8]())
    for (name, value) in given { try query.take(name, value) }
    let more = try await query.run(options) {
      bytes += $0
      return true
    }
    return String(decoding: bytes, as: UTF8.self) + (more.isEmpty ? "" : "\n# " + more)
  }

  @Test(
    "reports of a store that a collector has open, by the filter, over pages, up to the limit",
    arguments: [true, false])
  func reads(isPostgreSQL: Bool) async throws {
    let rig = StoreRig()
    var options = CollectorOptions(state: rig.path, keys: [:])
    let store: any PacketStore
    if isPostgreSQL {
      let database = try await PostgreSQLRig()
      options.store = try PostgreSQLTarget(uri: database.server.uri(database.database))
      store = try database.store()
    } else {
      store = try rig.sqlite()
    }
    for round in 0..<5 {
      _ = try await store.take(StoreRig.packet(Array(round * 500..<round * 500 + 500), type: round == 2 ? "rare" : "t"))
    }
    func numbers(_ given: [(String, String)]) async throws -> [Int?] {
      try await Self.ask(options, given).split(separator: "\n").filter { !$0.hasPrefix("# ") }.map {
        try JSONValue(parsing: Array($0.utf8))["meta"]?["n"]?.int
      }
    }
    #expect(try await numbers([]) == Array(0..<1000))
    #expect(try await numbers([("limit", "2100"), ("newest", "")]) == Array((400..<2500).reversed()))
    #expect(try await numbers([("type", "rare"), ("meta", "n >= 1400"), ("meta", "n < 1402")]) == [1400, 1401])
    #expect(try await numbers([("device", "absent")]) == [])
    func more(_ given: [(String, String)]) async throws -> String? {
      try await Self.ask(options, given).split(separator: "\n").last.flatMap { $0.hasPrefix("# ") ? String($0) : nil }
    }
    for order in [[], [("newest", "")], [("format", "csv")]] {
      #expect(
        try await more(order) == "# prism-collector: 1500 more reports are not printed: --limit 2500 has them",
        "\(order)")
    }
    for few in [[("limit", "10")], [("type", "rare")]] { #expect(try await more(few) == nil) }
    #expect(try await more([("type", "t")])?.hasPrefix("# prism-collector: 1000 more") == true)
    #expect(try await numbers([("until", "1970-01-01T00:00:00.002Z"), ("time", "created")]) == [0, 1])
    #expect(try await numbers([("until", "1970-01-01T00:00:00.002Z"), ("time", "received")]) == [])
    let csv = try await Self.ask(options, [("format", "csv"), ("limit", "1")])
    #expect(
      csv.split(separator: "\r\n").count == 2 && csv.contains(",\"meta.n\"\r\n") && csv.hasSuffix(",0\r\n"), "\(csv)")
    await store.close()
  }

  @Test(
    "a question with a fault is refused with what is allowed",
    arguments: [
      ("limit", "0", "--limit: must be 1 to"), ("format", "xml", "--format: must be ndjson or csv"),
      ("time", "now", "--time: must be created or received"),
      ("since", "yesterday", "--since: is `yesterday`, must be a span (90s"),
      ("meta", "=1", "--meta: a condition needs keys"),
    ])
  func faults(name: String, value: String, start: String) {
    var query = ReportQuery()
    let fault = #expect(throws: Failure.self) { try query.take(name, value) }
    #expect(fault?.message.hasPrefix(start) == true && fault?.exitCode == 64)
  }
}
