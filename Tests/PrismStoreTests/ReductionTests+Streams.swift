import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Streams of OpenTelemetry, which count from their start on.
extension ReductionTests {
  private static let hour = 3600

  /// - Parameters:
  ///   - numbers: `total`, or `value` and `buckets`.
  ///   - start: in seconds, from that of the test on; nil: it is missing.
  ///   - tags: of its group.
  private static func point(
    _ numbers: String, stream: String = "s", start: Int? = 1, time: Int?, tags: String = ""
  ) -> String {
    func nanoseconds(_ second: Int?) -> Int { second.map { (1_700_000_000 + $0) * 1_000_000_000 } ?? 0 }
    let times = #""start":\#(nanoseconds(start)),"time":\#(nanoseconds(time))"#
    return part("sum", tags: tags, #""count":1,\#(numbers),"stream":"\#(stream)",\#(times)"#)
  }

  /// - Parameter points: times in seconds.
  struct Course: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let points: [(total: Int, time: Int?)]
    var start: Int? = -60
    let sum: Int

    static let all = [
      Course(testDescription: "steady", points: [(10, 1), (20, 2), (30, 3)], sum: 30),
      Course(testDescription: "one point a day ahead", points: [(10, 1), (20, 86_400), (30, 3), (50, 5)], sum: 50),
      Course(testDescription: "clock set back", points: [(10, 1), (20, 2), (30, -3598), (50, -3597)], sum: 50),
      Course(testDescription: "no time", points: [(10, nil), (20, nil), (20, nil), (30, nil)], sum: 30),
      Course(testDescription: "late, and again", points: [(10, 1), (30, 3), (20, 2), (30, 3), (40, 4)], sum: 40),
      Course(testDescription: "less at the same start", points: [(100, 1), (99, 2), (101, 3)], sum: 101),
      Course(
        testDescription: "no start: begins with its first point, and less at a later time is a restart",
        points: [(10, 1), (20, 3), (15, 2), (5, 4), (8, 5), (8, 7), (6, 6)], start: nil, sum: 18),
    ]
  }

  @Test("totals decide what is new, whatever the times say", arguments: Course.all, [false, true])
  func courses(course: Course, isHistogram: Bool) async throws {
    let store = try await rig.open()
    for (total, time) in course.points {
      let value = #""value":{"count":\#(total),"sum":\#(2 * total),"min":1,"max":3},"buckets":[\#(total),0]"#
      let numbers = isHistogram ? value : #""total":\#(total).0"#
      try await self.store(parts: [Self.point(numbers, start: course.start, time: time)], in: store)
    }
    let numbers = try #require(try await leave(store).first?.numbers)
    let value = numbers["fields"]?["value"]
    #expect(value?[isHistogram ? "count" : "sum"]?.int == course.sum)
    #expect(!isHistogram || value?["sum"]?.int == 2 * course.sum && numbers["buckets"] == [.int(course.sum), 0])
    #expect(numbers["count"]?.int == course.points.count)
    await store.close()
  }

  @Test("of a total only what is new counts: once, over windows, a kill and a restart of its program, late or again")
  func totals() async throws {
    func total(_ total: Double, stream: String = "s", start: Int = 1, _ time: Int) -> String {
      Self.point(#""total":\#(total)"#, stream: stream, start: start, time: time)
    }
    try await run(isKilled: true) { store in
      // The second stream ran for long before it was seen.
      try await self.store(
        parts: [total(10, 5), total(12, 6), total(12, 6), total(11, 5), total(1e6, stream: "old", Self.hour + 2)],
        in: store)
      let rows = try await leave(store)
      #expect(rows.map { $0.numbers["fields"]?["value"]?["sum"] } == [12])
      try await self.store(parts: [total(15, 7)], in: store)
      rig.keepAsKilled()
      try await self.store(parts: [total(99, 8)], in: store)  // not answered
    }
    try await run { store in
      try await self.store(
        parts: [total(20, 9), total(4, start: 10, 11), total(1e6 + 7, stream: "old", Self.hour + 3)], in: store)
      #expect(try await leave(store).map { $0.numbers["fields"]?["value"]?["sum"] } == [19], "3 + 5 + 4 + 7")
    }
  }

  @Test("histograms that count from their start on are merged: buckets exactly, percentiles within their error")
  func cumulativeHistograms() async throws {
    let store = try await rig.open()
    var (sketch, parts): (Sketch, [String]) = (Sketch(), [])
    for time in 1...4 {
      for number in 1...100 * time { sketch.add(Double(number)) }
      let (count, sum, low, high) = (time * 3, time * 30, time, time * 2)
      let bounded = #""value":{"count":\#(count),"sum":\#(sum),"min":1,"max":20},"buckets":[\#(low),\#(high)]"#
      let bound = Self.point(bounded, stream: "b", time: time, tags: #""b":1"#)
      parts.append(Self.point(#""value":\#(sketch.json.text)"#, time: time))
      parts.append(bound)
    }
    try await self.store(parts: Array(parts[0..<4]), in: store)
    _ = try await leave(store)
    try await self.store(parts: Array(parts[4...]), in: store)
    let rows = try await leave(store).map(\.numbers)
    let merged = try #require(rows.first { $0["buckets"] == nil }?["fields"]?["value"].flatMap { Sketch(json: $0) })
    #expect(merged.count == 700 && merged.sum == 125_350)
    #expect(abs(merged.percentile(0.5)! - 175) <= 175 * merged.error)
    let bounded = rows.first { $0["buckets"] != nil }
    #expect(bounded?["buckets"] == [2, 4] && bounded?["fields"]?["value"]?["sum"] == 60)
    await store.close()
  }

  @Test("a group has a bound of streams, and one that was left out adds nothing twice") func streams() async throws {
    let store = try await rig.open()
    func totals(_ time: Int) -> [String] {
      (0..<40).map {
        Self.point(#""total":\#(time)"#, stream: "\($0)", start: Self.hour, time: Self.hour * 2 + 1 + time)
      }
    }
    for time in 1...5 { try await self.store(parts: totals(time), in: store) }
    let sum = try #require(try await leave(store).first?.numbers["fields"]?["value"]?["sum"]?.int)
    #expect((0...4 * 40).contains(sum))
    await store.close()
  }
}
