import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs

/// Lines of statsd as clients send them (docs/statsd-syslog.md). Those of DogStatsD are of docs.datadoghq.com,
/// "DogStatsD datagram format".
@Suite struct StatsdTests {
  struct Good: Sendable, CustomTestStringConvertible {
    let line: String, kind: String, values: [String], rate: Double, tags: [String: String]
    var testDescription: String { line }

    init(_ line: String, _ kind: String, _ values: [String], rate: Double = 1, _ tags: [String: String] = [:]) {
      (self.line, self.kind, self.values, self.rate, self.tags) = (line, kind, values, rate, tags)
    }
  }

  private static let good: [Good] = [
    // github.com/statsd/statsd, "Metric types"
    .init("gorets:1|c", "counter", ["1"]), .init("gorets:1|c|@0.1", "counter", ["1"], rate: 0.1),
    .init("glork:320|ms|@0.1", "timer", ["320"], rate: 0.1), .init("gaugor:333|g", "gauge", ["333"]),
    .init("gaugor:-10|g", "gauge", ["-10"]), .init("gaugor:+4|g", "gauge", ["+4"]),
    .init("uniques:765|s", "set", ["765"]),
    // DogStatsD
    .init("page.views:1|c", "counter", ["1"]), .init("fuel.level:0.5|g", "gauge", ["0.5"]),
    .init("song.length:240|h|@0.5", "histogram", ["240"], rate: 0.5), .init("users.uniques:1234|s", "set", ["1234"]),
    .init("users.online:1|c|#country:china", "counter", ["1"], ["country": "china"]),
    .init("users.online:1|c|@0.5|#country:china", "counter", ["1"], rate: 0.5, ["country": "china"]),
    .init("page.views:1:2:32|d", "distribution", ["1", "2", "32"]),
    .init("song.length:240:234|h|@0.5", "histogram", ["240", "234"], rate: 0.5),
    .init(
      "page.views:1|g|#env:dev|c:83c0a99c0a54c0c187f461c7980e9b57f3f6a8b0c918c8d93df19a9de6f3fe1d", "gauge", ["1"],
      ["env": "dev"]),
    .init("page.views:15|c|#env:dev|T1656581400", "counter", ["15"], ["env": "dev"]),
    .init("page.views:1|c|#env:dev|c:ci-1|e:it-false,cn-web|card:low", "counter", ["1"], ["env": "dev"]),
    // Python's statsd and datadog
    .init("till.sales:-3|c", "counter", ["-3"]), .init("till.wait:3.000001|ms", "timer", ["3.000001"]),
    .init("till.wait:1e3|ms", "timer", ["1e3"]), .init("a:.5|g", "gauge", [".5"]), .init("a:5.|g", "gauge", ["5."]),
    .init("a:1|c|#b:x:y,flag,b:z", "counter", ["1"], ["b": "z", "flag": ""]),
    .init("a:1|c|#", "counter", ["1"]), .init("ü:1|c", "counter", ["1"]), .init("a b/c:1|c", "counter", ["1"]),
    .init("mail:a@b:c|s", "set", ["a@b:c"]), .init("a:1|c|@1", "counter", ["1"]),
  ]

  @Test("samples of every kind are read, with rate and tags", arguments: good) func reads(one: Good) throws {
    let line = try StatsdLine(Array(one.line.utf8)[...])
    #expect(line.kind.name == one.kind && line.rate == one.rate)
    #expect(line.values.map { String(decoding: $0, as: UTF8.self) } == one.values)
    let tags = StatsdLine.members(of: line.tags).map { ($0.key, $0.value.string ?? "?") }
    #expect(Dictionary(uniqueKeysWithValues: tags) == one.tags && tags.map(\.0) == tags.map(\.0).sorted())
  }

  /// Whole lines; further ones below are a sound line with a fault in one part.
  private static let malformed: [String] =
    [
      "", " ", ":", "|", "a", "a:", "a:1", "a:1|", "a|c", "a|1|c", ":1|c", "a:|c", "a:1||c", "a:1|c|", "a:1|c||#b:c",
      "a:1|C", "a:1|cc", "a:1|x", "a:1|m", "a:1| c", "a:1|c |@0.1", "a:1|c|0.1", "a:1|c|?", "a:1|c|%b", "{\"a\":1}",
      "<13>Oct 11 22:14:15 a: b", "GET / HTTP/1.1", "a:1|ms:2", "a:1|c:2|c", "a:|s", "a::1|c", "a:1:|c", "a:1::2|c",
      "\u{0}", "a:\u{0}|c", "\u{FEFF}", "a:1\u{0}|c", "==", "::::", "||||", "a:1|#b:c|c",
    ] + badNumbers.flatMap { ["a:\($0)|c", "a:\($0)|ms", "a:1:\($0)|d"] } + badRates.map { "a:1|c|@\($0)" }
    + ["\(String(repeating: "n", count: 1025)):1|c", "a:1|c|#\(String(repeating: "t", count: 1024))"]
  private static let badNumbers = [
    "x", "1x", "nan", "inf", "-inf", "Infinity", "0x10", "1e400", "1e101", "--1", "+-1", "+", "-", "1 ", " 1", "1,5",
    "1_000", "٣", "1e", "e1", "1.2.3", "1-2",
  ]
  private static let badRates = ["", "0", "-0.1", "1.1", "2", "1e-7", "x", "nan", "0,1", "@0.1", " 0.1"]

  @Test("a line that is no sample is refused whole") func malformed() {
    #expect(Self.malformed.count > 100)
    for line in Self.malformed {
      #expect(throws: StatsdLine.Fault.malformed, "\(line.prefix(60))") { try StatsdLine(Array(line.utf8)[...]) }
    }
  }

  @Test(
    "events and service checks are refused by name",
    arguments: [
      ("_e{21,36}:An exception occurred|Cannot parse CSV file from 10.0.0.17|t:warning|#err_type:bad_file", true),
      ("_e{1,1}:a|b", true), ("_e{", true),
      ("_sc|Redis connection|2|#env:dev|m:Redis connection timed out after 10s", false),
      ("_sc|", false),
    ])
  func named(line: String, isEvent: Bool) {
    let fault: StatsdLine.Fault = isEvent ? .event : .serviceCheck
    #expect(throws: fault) { try StatsdLine(Array(line.utf8)[...]) }
  }

  /// The report of one metric of these lines.
  private static func numbers(_ lines: [String]) throws -> [JSONValue] {
    var groups = StatsdGroups()
    for line in lines { groups.add(try StatsdLine(Array(line.utf8)[...])) }
    return try groups.take().map { try JSONValue(parsing: [0x7B] + $0.members + [0x7D]) }
  }

  @Test("a counter is multiplied by its rate, and a timer counts for those that were left out") func rates() throws {
    let counter = try #require(try Self.numbers(["a:3|c|@0.1", "a:2|c", "a:1|c|@0.5"]).first?["REDUCED"])
    #expect(counter["count"] == 3 && counter["value"]?["sum"] == 34 && counter["value"]?["scale"] == nil)
    let timer = try #require(try Self.numbers(["a:320|ms|@0.1", "a:100|ms"]).first?["REDUCED"])
    let sketch = try #require(timer["value"].flatMap { Sketch(json: $0) })
    #expect(timer["count"] == 2 && sketch.count == 11 && sketch.sum == 3300 && sketch.min == 100)
    #expect(abs(sketch.percentile(0.5)! - 320) <= 320 * sketch.error)
  }

  @Test("samples are together by metric, kind and tags") func groups() throws {
    let reports = try Self.numbers([
      "a:1|c|#x:1,y:2", "a:1|c|#x:1,y:2", "a:1|c|#x:2", "a:1|g", "b:1|c", "a:7|c|#x:1,y:2",
    ])
    let sums = reports.map {
      "\($0["metric"]!.string!) \($0["kind"]!.string!) \($0["tags"]?.text ?? "-") \($0["REDUCED"]!["count"]!.text)"
    }
    #expect(
      Set(sums) == [
        #"a counter {"x":"1","y":"2"} 3"#, #"a counter {"x":"2"} 1"#, "a gauge - 1", "b counter - 1",
      ])
  }

  @Test("a gauge keeps its steps in their order, and values of a set are hashes") func steps() throws {
    let gauge = try Self.numbers(["g:333|g", "g:-10|g", "g:+4|g"]).first?["REDUCED"]
    #expect(gauge?["steps"] == [333, "-10.0", "4.0"])
    let set = try Self.numbers(["u:a|s", "u:b|s", "u:a|s"]).first?["REDUCED"]
    #expect(set?["count"] == 3 && set?["distinct"]?.array?.count == 2)
    let many = try Self.numbers((0..<450).map { "g:+\($0)|g" })
    #expect(many.map { $0["REDUCED"]?["steps"]?.array?.count } == [200, 200, 50], "none is larger than a meta may be")
  }
}
