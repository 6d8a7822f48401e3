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

  @Test("totals decide what is new, not the times of points", arguments: Course.all, [false, true])
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

  /// Each stream has totals of 1, 2 and 3. - Parameter start: in seconds; of a stream that is old the first one does not count.
  @Test(
    "each of a group's streams counts once, and one without a place is said to be left out",
    arguments: [(4, -60), (6, -4000), (17, -60), (256, -60), (300, -60), (300, -4000)], [false, true])
  func streams(course: (count: Int, start: Int), isHistogram: Bool) async throws {
    let (store, count, start) = (try await rig.open(), course.count, course.start)
    let held = min(count, isHistogram ? 64 : 256)
    for total in 1...3 {
      let value = #""value":{"count":\#(total),"sum":\#(total),"min":1,"max":1},"buckets":[\#(total),0]"#
      let numbers = isHistogram ? value : #""total":\#(total).0"#
      let points = (0..<count).map { Self.point(numbers, stream: "\($0)", start: start, time: total) }
      try await self.store(parts: points, in: store)
    }
    let numbers = try #require(try await leave(store).first?.numbers)
    #expect(numbers["fields"]?["value"]?["sum"]?.int == (start == -60 ? 3 : 2) * held)
    #expect(numbers["count"]?.int == 3 * count && numbers["leftOut"]?.int ?? 0 == 3 * (count - held))
    await store.close()
  }

  private func total(_ total: Int, _ stream: String, start: Int = -60, tags: String = "") -> String {
    let now = Int(rig.time.unixMilliseconds / 1000 - 1_700_000_000)
    return Self.point(#""total":\#(total).0"#, stream: stream, start: start, time: now, tags: tags)
  }

  private func sum(_ store: ReportStore) async throws -> [Int?] {
    try await leave(store).map { $0.numbers["fields"]?["value"]?["sum"]?.int }
  }

  @Test("a stream takes the place of one that is silent for two hours, and what it counted before counts never")
  func silent() async throws {
    try await run(isKilled: true) { store in
      try await self.store(parts: (0..<256).map { total(1, "\($0)") } + [total(1000, "old")], in: store)
      #expect(try await sum(store) == [256])
      rig.time.advance(by: .seconds(7000))
      while try await store.maintain() {}
      try await self.store(parts: [total(2, "0"), total(100, "young", start: 7000)], in: store)
      #expect(try await sum(store) == [1], "the others are alive")
      rig.time.advance(by: .seconds(260))
      let points = [total(1002, "old"), total(101, "young", start: 7000), total(7, "new", start: 7300)]
      try await self.store(parts: points, in: store)
      rig.keepAsKilled()
    }
    try await run { store in
      #expect(try await sum(store) == [7])
      try await self.store(
        parts: [total(1004, "old"), total(103, "young", start: 7000), total(5, "0"), total(50, "1")], in: store)
      #expect(try await sum(store) == [7], "2, 2 and 3: the stream 1 was forgotten, and is old")
    }
  }

  @Test("a stream whose bounds change, and change back, counts in one group at a time") func bounds() async throws {
    let store = try await rig.open()
    var sums: [Int?] = []
    for (time, (count, bound)) in [(6, 1), (9, 2), (12, 2), (15, 1), (16, 1)].enumerated() {
      let value = #""value":{"count":\#(count),"sum":\#(count),"min":1,"max":1},"buckets":[\#(count),0]"#
      let part = Self.point(value, start: -60, time: time + 1)
      try await self.store(parts: [#""bounds":[\#(bound)],"# + part], in: store)
      sums += try await sum(store)
    }
    #expect(sums == [6, nil, 3, nil, 1])
    await store.close()
  }

  @Test(
    "streams that are alive lose nothing to groups of others, nor to those of their own user", arguments: [1000, 2000])
  func alive(userID: UInt32) async throws {
    let store = try await rig.open()
    func totals(_ number: Int) -> [String] { (0..<990).map { total(number, "\($0)", tags: #""n":\#($0)"#) } }
    try await self.store(parts: totals(1000), in: store)
    #expect(try await sum(store) == Array(repeating: 1000, count: 990))
    let others = (0..<100).map {
      Self.part("counter", tags: #""o":\#($0)"#, #""count":1,"value":{"count":1,"sum":1,"min":1,"max":1}"#)
    }
    try await self.store(parts: others, in: store, userID: userID)
    _ = try await leave(store)
    try await self.store(parts: totals(1001), in: store)
    #expect(try await sum(store) == Array(repeating: 1, count: 990))
    await store.close()
  }

  @Test("a user's streams have a bound in all") func namespaceBound() async throws {
    let store = try await rig.open()
    let value = #""value":{"count":1,"sum":1,"min":1,"max":1},"buckets":[1,0]"#
    let points = (0..<63).flatMap { group in
      (0..<64).map { Self.point(value, stream: "\(group).\($0)", start: -60, time: 1, tags: #""n":\#(group)"#) }
    }
    try await self.store(parts: points, in: store)
    let rows = try await leave(store)
    #expect(rows.reduce(0) { $0 + ($1.numbers["leftOut"]?.int ?? 0) } == 63 * 64 - 4000)
    await store.close()
  }
}
