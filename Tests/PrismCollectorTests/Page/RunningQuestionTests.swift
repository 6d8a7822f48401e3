import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

/// Questions over more than one part, against the same questions in one part.
@Suite("Questions that go on")
struct RunningQuestionTests {
  private static let kinds: [StoreRig.Kind] = [.sqlite, .postgresql]
  private static let questions: [(ReportGrouping, [String]?, String?)] = [
    (by(.nothing), nil, nil), (by(.type), nil, nil), (by(.device), nil, "n >= 3"), (by(.meta(["w"])), nil, nil),
    (by(.type, countsRepeats: true), nil, nil), (by(.nothing), ["n"], nil), (by(.meta(["w"])), ["n"], "n < 17"),
    (by(.namespace), ["none"], nil),
  ]

  private static func by(_ key: ReportGrouping.Key, countsRepeats: Bool = false) -> ReportGrouping {
    ReportGrouping(bucketMilliseconds: 4, key: key, countsRepeats: countsRepeats)
  }

  private static func fill(_ store: any PacketStore) async throws {
    for round in 0..<6 {
      _ = try await store.take(
        StoreRig.packet(
          Array(round * 3..<round * 3 + 3), device: "d\(round % 2)", namespace: round < 3 ? "shop" : "prism",
          type: round % 3 == 0 ? "x" : "y", members: { #""w":"\#($0 % 4)","REPEAT_COUNT":\#($0 % 5 + 1)"# }))
    }
  }

  @Test("an answer of many parts is that of one part, and each part says how far it is", arguments: kinds)
  func parts(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    try await Self.fill(store)
    let (whole, small) = (store.queries, CutWindows.small(store.queries))
    for (grouping, path, condition) in Self.questions {
      var filter = ReportFilter(scope: .everything)
      filter.metas = try condition.map { [try MetaCondition($0)] } ?? []
      let question = ReportCounting(filter, grouping, numbersOf: path)
      var (one, many) = (question, question)
      try await one.goOn(ReportScan(queries: whole, time: SystemTime()), within: .seconds(20))
      #expect(!one.goesOn && one.share == 1 && one.reach.since == nil)
      var (parts, shares) = (0, [0.0])
      while many.goesOn {
        try await many.goOn(ReportScan(queries: small, time: SystemTime()), within: .zero)
        #expect(many.goesOn == (many.reach.since != nil) && many.share > shares[parts])
        shares.append(many.share)
        parts += 1
        try #require(parts < 30)
      }
      #expect(parts > 3 && many.share == 1)
      #expect(many.counts == one.counts)
      #expect(Self.sorted(many.numbers) == Self.sorted(one.numbers))
    }
    await store.close()
  }

  private static func sorted(_ numbers: [ReportNumbers]) -> [ReportNumbers] {
    numbers.sorted { ($0.time, $0.group) < ($1.time, $1.group) }
  }

  /// A collector whose questions have small windows.
  private static func api(_ rig: PageRig, _ inWindow: @escaping @Sendable () -> Void = {}) -> PageAPI {
    var api = PageAPI(rig.collector)
    let queries = CutWindows.small(rig.collector.store.queries, inWindow: inWindow)
    api.scan = ReportScan(queries: queries, time: rig.rig.time)
    return api
  }

  private static func ask(
    _ api: PageAPI, _ path: String, _ query: [(name: String, value: String)]
  ) async throws -> JSONValue {
    try JSONValue(parsing: await api.answer(PageRig.request("/api/v1" + path, query), isOwner: true).body)
  }

  @Test(
    "the same question again goes on where it came to, with the times of its first part, and ends whole",
    arguments: [("/histogram", "by", "type"), ("/aggregate", "key", "n")])
  func again(path: String, name: String, value: String) async throws {
    let rig = try PageRig()
    try await Self.fill(rig.collector.store)
    let (api, questions) = (Self.api(rig), rig.collector.access.page.questions)
    let asked = [(name: name, value: value), (name: "time", value: "received")]
    let whole = try await rig.json(path, asked)
    #expect(whole["goesOn"]?.bool == false && whole["readSince"] == .null && whole["progress"]?.double == 1)
    var (answer, before) = (JSONValue.null, -1.0)
    for part in 1...30 {
      answer = try await Self.ask(api, path, asked + [(name: "within", value: part % 2 == 0 ? "0" : "00")])
      let progress = try #require(answer["progress"]?.double)
      #expect(progress > before)
      before = progress
      guard answer["goesOn"]?.bool == true else { break }
      #expect(answer["readSince"] != .null && questions.count == 1)
      rig.rig.time.advance(by: .milliseconds(1))
    }
    #expect(answer == whole)
    #expect(questions.count == 0)
  }

  @Test("a question of a client that goes leaves nothing behind, and the next one begins")
  func left() async throws {
    let rig = try PageRig()
    try await Self.fill(rig.collector.store)
    let windows = Mutex(0)
    let questions = rig.collector.access.page.questions
    let api = Self.api(rig) {
      let isFourth = windows.withLock { count in
        count += 1
        return count == 4
      }
      if isFourth { withUnsafeCurrentTask { $0?.cancel() } }
    }
    let part = [(name: "within", value: "0"), (name: "time", value: "received")]
    for _ in 0..<3 { #expect(try await Self.ask(api, "/histogram", part)["goesOn"]?.bool == true) }
    #expect(questions.count == 1)
    let task = Task { await api.answer(PageRig.request("/api/v1/histogram", part), isOwner: true).status }
    #expect(await task.value == 503 && questions.count == 0)
    let next = try await Self.ask(api, "/histogram", part)
    #expect(next["progress"]?.double ?? 1 < 0.5)
  }

  @Test("a reader who asks no more is forgotten, and one who asks on is not")
  func forgotten() async throws {
    let time = ManualTime()
    let questions = RunningQuestions(time: time)
    questions.keep(Self.counting, Self.key("a"))
    questions.keep(Self.counting, Self.key("b"))
    while time.sleeperCount < 2 { await Task.yield() }
    time.advance(by: .seconds(6))
    questions.keep(try #require(questions.take(Self.key("b"))), Self.key("b"))
    time.advance(by: .seconds(6))
    while questions.count > 1 { await Task.yield() }
    for _ in 0..<100 { await Task.yield() }
    #expect(questions.take(Self.key("a")) == nil && questions.take(Self.key("b")) != nil)
  }

  @Test("questions that go on are bounded: all, those of one reader, and their memory")
  func bounds() async throws {
    let questions = RunningQuestions(time: ManualTime())
    for place in 0..<6 { questions.keep(Self.counting, Self.key("a", String(place))) }
    #expect(questions.count == RunningQuestions.ofReaderMax && questions.take(Self.key("a", "5")) != nil)
    for reader in ["b", "c", "d", "e", "f", "g"] { questions.keep(Self.counting, Self.key(reader)) }
    #expect(questions.count == RunningQuestions.countMax && questions.take(Self.key("g")) == nil)
    questions.forget()
    #expect(questions.count == 0)
    var large = Self.counting
    try await large.goOn(ReportScan(queries: ManyNumbers(), time: ManualTime()), within: .zero)
    #expect(large.goesOn)
    for reader in ["a", "b", "c"] { questions.keep(large, Self.key(reader)) }
    #expect(questions.count == 2 && questions.take(Self.key("c")) == nil)
  }

  @Test("a question of another reader, of other namespaces or with other words is another one")
  func keys() {
    let request = { (name: String, scope: Scope, query: [(name: String, value: String)]) in
      RunningQuestions.Key(
        PageRequest(
          http: PageRig.request("/api/v1/histogram", query), parts: [],
          reader: ReaderIdentity(role: .viewer, scope: scope, name: name)))
    }
    let key = request("a", .fleet, [("by", "type"), ("within", "5")])
    #expect(key == request("a", .fleet, [("within", "1000"), ("by", "type")]))
    #expect(key != request("b", .fleet, [("by", "type")]))
    #expect(key != request("a", Scope(["shop"]), [("by", "type")]))
    #expect(key != request("a", .fleet, [("by", "kind")]))
  }

  private static let counting = ReportCounting(
    ReportFilter(scope: .everything), ReportGrouping(bucketMilliseconds: 1), numbersOf: ["n"])

  private static func key(_ reader: String, _ word: String = "") -> RunningQuestions.Key {
    .init(reader: reader, scope: .everything, path: "/histogram", query: [["type", word]])
  }
}

/// More different numbers in each window than a third of what all questions may keep.
private struct ManyNumbers: ReportQueries {
  func windows(_: ReportFilter, _: ReportGrouping?) async throws(StoreFailure) -> [ClosedRange<Int64>] {
    [2...2, 1...1]
  }
  func newestID() async throws(StoreFailure) -> Int64 { 2 }
  func first(from id: Int64) async throws(StoreFailure) -> (id: Int64, receivedTime: Int64)? { (id, id) }
  func counts(_: ReportFilter, _: ReportGrouping) async throws(StoreFailure) -> [ReportCount] { [] }
  func numbers(
    _: ReportFilter, path: [String], _: ReportGrouping, limit: Int
  ) async throws(StoreFailure) -> (numbers: [ReportNumbers], from: Int64?) {
    let values = NumberCounts((0...ReportCounting.numbersMax / 3).map { Double($0) })
    return ([ReportNumbers(time: 0, group: "", values: values)], nil)
  }
  func streams(_: Scope, of device: String?, limit: Int) async throws(StoreFailure) -> [DeviceStream] { [] }
  func types(_: Scope, limit: Int) async throws(StoreFailure) -> [TypeName] { [] }
}

extension ReportScan {
  /// The answer of one part.
  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping
  ) async throws(StoreFailure) -> (numbers: [ReportNumbers], reach: Reach) {
    var counting = ReportCounting(filter, grouping, numbersOf: path)
    try await counting.goOn(self, within: Self.countBudget)
    return (counting.numbers, counting.reach)
  }
}
