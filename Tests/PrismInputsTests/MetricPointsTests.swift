import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine
@testable import PrismInputs

/// Points of OpenTelemetry's metrics that are added up (docs/recorder.md, "Reduce").
@Suite struct MetricPointsTests {
  private static let delta = 1, cumulative = 2

  private static func parts(
    _ kind: String, _ point: String, _ temporality: Int = delta, isMonotonic: Bool = true, bytesMax: Int = 8000
  ) throws -> [JSONValue]? {
    let tags =
      #""attributes":[{"key":"route","value":{"stringValue":"/pay"}},{"key":"code","value":{"intValue":"200"}}]"#
    let times = #""startTimeUnixNano":"1732154000000000000","timeUnixNano":"1732154081000000000""#
    let metric =
      #""name":"m","unit":"ms","\#(kind)":{"dataPoints":[{\#(tags),\#(times),\#(point)}],"aggregationTemporality":\#(temporality),"isMonotonic":\#(isMonotonic)}"#
    let parts = MetricPoints.parts(of: Array(metric.utf8), service: "till", origin: [7], bytesMax: bytesMax)
    return try parts?.map {
      #expect($0.time == 1_732_154_081_000)
      return try JSONValue(parsing: [0x7B] + $0.members + [0x7D])
    }
  }

  private static func numbers(
    _ kind: String, _ point: String, _ temporality: Int = delta, isMonotonic: Bool = true
  ) throws -> JSONValue? {
    try parts(kind, point, temporality, isMonotonic: isMonotonic)?.first?[ReportReduction.key]
  }

  @Test("a point is one report of its metric, kind, unit, service and attributes") func group() throws {
    let part = try #require(try Self.parts("gauge", #""asDouble":2.5"#)?.first)
    #expect(part["metric"] == "m" && part["kind"] == "gauge" && part["unit"] == "ms" && part["service"] == "till")
    #expect(part["tags"] == ["code": 200, "route": "/pay"], "attributes are a set")
    #expect(part["REDUCED"] == ["count": 1, "steps": [.double(2.5)]])
    #expect(try Self.parts("gauge", #""asInt":"7""#, bytesMax: 60)?.first?["tags"] == nil, "one that is too long")
  }

  @Test("sums are counted by what they are: a change, a total of a stream, or the value of a gauge") func sums() throws
  {
    let change = try Self.numbers("sum", #""asInt":"7""#)
    #expect(change?["value"] == ["count": 1, "sum": 7, "min": 7, "max": 7] && change?["stream"] == nil)
    let total = try Self.numbers("sum", #""asInt":"7""#, Self.cumulative)
    #expect(total?["total"]?.double == 7 && total?["stream"]?.string?.count == 16)
    #expect(total?["start"] == 1_732_154_000_000_000_000 && total?["time"] == 1_732_154_081_000_000_000)
    let level = try Self.numbers("sum", #""asInt":"7""#, Self.cumulative, isMonotonic: false)
    #expect(level?["steps"] == [7] && level?["stream"] == nil, "what may fall is no stream")
    #expect(try Self.numbers("sum", #""flags":2,"asInt":"7""#) != nil, "another flag")
  }

  @Test("programs with equal resources are streams of their own, by their starts") func starts() throws {
    func stream(_ start: String) throws -> String? {
      let metric =
        #""name":"m","sum":{"dataPoints":[{"startTimeUnixNano":"\#(start)","timeUnixNano":"9","asInt":"7"}],"aggregationTemporality":2,"isMonotonic":true}"#
      let parts = MetricPoints.parts(of: Array(metric.utf8), service: "till", origin: [7], bytesMax: 8000)
      let members = try #require(parts?.first?.members)
      return try JSONValue(parsing: [0x7B] + members + [0x7D])[ReportReduction.key]?["stream"]?.string
    }
    #expect(try stream("5") == stream("5") && stream("5") != stream("6"))
  }

  @Test("a histogram keeps its buckets, and an exponential one becomes a sketch of the same numbers") func histograms()
    throws
  {
    let bounded = try #require(
      try Self.parts("histogram", #""count":"6","sum":45.5,"bucketCounts":["0","4","2"],"explicitBounds":[5,10]"#)?
        .first)
    #expect(bounded["bounds"] == [5, 10] && bounded["REDUCED"]?["buckets"] == [0, 4, 2])
    #expect(bounded["REDUCED"]?["value"] == ["count": 6, "sum": .double(45.5), "min": 5, "max": 10])
    for scale in [3, 7, 12] {
      // 1 is in the bucket -1, and 2 in that of 2^scale - 1.
      let point =
        #""count":"5","sum":8,"scale":\#(scale),"zeroCount":"1","positive":{"offset":-1,"bucketCounts":["1"]},"negative":{"offset":\#((1 << scale) - 1),"bucketCounts":["3"]}"#
      let value = try #require(try Self.numbers("exponentialHistogram", point)?["value"])
      let found = try #require(Sketch(json: value))
      #expect(found.scale == min(scale, 7) && found.count == 5 && found.percentile(0.8) == 0 && found.sum == 8)
      #expect(abs(try #require(found.percentile(0.5)) + 2) <= 2 * found.error + 1e-9)
    }
  }

  @Test(
    "a point without numbers that can be added up is no report",
    arguments: [
      ("gauge", #""asDouble":"NaN""#), ("gauge", #""asInt":"x""#), ("sum", #""flags":1,"asInt":"7""#),
      ("histogram", #""count":"-1""#), ("histogram", #""count":"1","bucketCounts":["1"],"explicitBounds":[1,2]"#),
      ("exponentialHistogram", #""scale":-9,"zeroCount":"1""#),
      ("exponentialHistogram", #""scale":0,"positive":{"offset":9223372036854775807,"bucketCounts":["1","1"]}"#),
      ("exponentialHistogram", #""scale":0,"negative":{"offset":-9223372036854775808,"bucketCounts":["1"]}"#),
      ("exponentialHistogram", #""scale":0,"positive":{"offset":0,"bucketCounts":["9223372036854775807","9"]}"#),
    ])
  func junk(kind: String, point: String) throws {
    #expect(try Self.parts(kind, point)?.isEmpty == true)
  }

  @Test("a summary is no such metric, and one with too many values is not taken apart") func summary() throws {
    #expect(try Self.parts("summary", #""count":"1""#) == nil)
    let many = Array(repeating: "0", count: 100_000).joined(separator: ",")
    #expect(try Self.parts("gauge", #""asInt":"1","exemplars":[\#(many)]"#) == nil)
  }

  @Test("over HTTP, metrics are reduced where the namespace says so, and only there", arguments: [true, false])
  func server(isReduced: Bool) async throws {
    let point = #"{"timeUnixNano":"1732154081000000000","asInt":"7"}"#
    let body =
      #"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","sum":{"aggregationTemporality":1,"isMonotonic":true,"dataPoints":[\#(Array(repeating: point, count: 5).joined(separator: ","))]}}]}]}]}"#
    try await withInputRig {
      guard isReduced else { return }
      let place = $0.namespaces[NamespaceName("otel")!]!.monitorList.firstIndex { $0.type.text == "otel.metric" }!
      $0.namespaces[NamespaceName("otel")!]!.monitorList[place].filters.reduce = ReportReduction()
    } _: { rig in
      let client = try InputClient(.unix(rig.path))
      let head =
        "POST /v1/metrics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
      try await client.send(Array((head + body).utf8))
      #expect(String(decoding: try await client.rest(), as: UTF8.self).hasPrefix("HTTP/1.1 200"))
      let metas = try await rig.engine.parts.store.status()[NamespaceName("otel")!]?[.meta]
      #expect(metas?.filtered.collapsed == (isReduced ? 4 : 0) && metas?.ledger.stored == (isReduced ? 0 : 1))
    }
  }
}
