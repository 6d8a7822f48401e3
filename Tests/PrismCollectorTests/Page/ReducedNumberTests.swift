import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Numbers of reports, and of rows that devices made of many (docs/recorder.md, "Reduce").
@Suite struct ReducedNumberTests {
  private static let pad = String(repeating: "x", count: 80)

  private func aggregate(_ rig: PageRig, _ by: String = "meta.route") async throws -> JSONValue {
    let times = [("since", "0"), ("until", "2000000000000"), ("time", "received")]
    return try await rig.json("/aggregate", [("key", "ms"), ("by", by)] + times)["summary"] ?? .null
  }

  private func row(_ numbers: some Sequence<Int>, route: String, isSum: Bool = false) -> String {
    let sketch = numbers.reduce(into: Sketch()) { $0.add(Double($1)) }
    return
      #""route":"\#(route)","REDUCED":{"count":\#(sketch.count),"fields":{"ms":\#((isSum ? sketch.sums : sketch.json).text)}}"#
  }

  @Test(
    "reduced rows and reports are one answer by group: exact but for percentiles, and those within the stated error")
  func merged() async throws {
    let rig = try PageRig()
    let store = rig.collector.store
    let rows = [
      row(1...500, route: "/a"), row(501...900, route: "/a"), row(1...10, route: "/sum", isSum: true),
      #""route":"/junk","REDUCED":{"fields":{"ms":{"count":-1}}}"#, #""route":"/junk","REDUCED":7"#,
    ]
    _ = try await store.take(StoreRig.packet(Array(0..<5), members: { rows[$0] }))
    _ = try await store.take(
      StoreRig.packet(
        Array(901...1000), members: { #""ms":\#($0),"route":"\#($0 > 990 ? "/raw" : "/a")""# }))
    let summary = try await aggregate(rig)
    let all = try #require(summary["/a"])
    #expect(
      all["count"] == 990 && all["min"]?.double == 1 && all["max"]?.double == 990 && all["avg"]?.double == 495.5,
      "\(summary.text)")
    let error = try #require(all["error"]?.double)
    #expect(error > 0 && error < 0.02)
    for (name, truth) in [("p50", 495.0), ("p95", 941.0)] {
      let found = try #require(all[name]?.double)
      #expect(abs(found - truth) <= truth * error, "\(name): \(found)")
    }
    #expect(summary["/raw"]?["error"]?.double == 0 && summary["/raw"]?["p50"]?.double == 995, "these are exact")
    let sums = try #require(summary["/sum"])
    #expect(sums["count"] == 10 && sums["avg"]?.double == 5.5 && sums["p50"]?.isNull == true)
    #expect(summary["/junk"] == nil)
    await rig.collector.close()
  }

  @Test("a common member groups the reports of its own packets, over many blocks") func common() async throws {
    let rig = try PageRig()
    for version in 0..<4 {
      let packet = try StoreRig.packet(
        Array(version * 1500..<(version + 1) * 1500), device: "d\(version)", reportPrefix: "v\(version)",
        common: { _ in #""APP_VERSION":"\#(version)","pad":"\#(Self.pad)""# }, members: { #""ms":\#($0)"# })
      _ = try await rig.collector.store.take(packet)
    }
    let summary = try await aggregate(rig, "meta.APP_VERSION")
    for version in 0..<4 { #expect(summary["\(version)"]?["count"] == 1500, "\(summary.text.prefix(300))") }
    await rig.collector.close()
  }
}
