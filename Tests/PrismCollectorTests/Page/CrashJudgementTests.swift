import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Each crash is judged by its own facts")
struct CrashJudgementTests {
  private let rig: PageRig

  init() throws { rig = try PageRig() }

  private func crash(
    _ numbers: [Int], _ reason: String, version: String = "1.0", device: String = "d", payload: String? = nil
  ) async throws {
    let packet = try StoreRig.packet(
      numbers, device: device, type: "appCrash", payload: payload.map { Array($0.utf8) },
      members: { _ in #""reason":"\#(reason)","APP_NAME":"till","APP_VERSION":"\#(version)""# })
    _ = try await rig.collector.store.take(packet)
  }

  private func group(_ reason: String) async throws -> JSONValue {
    let groups = try await rig.json("/crashes", [("since", "0")])["groups"]?.array ?? []
    return try #require(groups.first { $0["reason"]?.string == reason })
  }

  private func change(_ reason: String, _ body: String, _ what: String = "state") async throws {
    let fingerprint = try await group(reason)["fingerprint"]?.string ?? ""
    let answer = await rig.collector.answerReader(
      PageRig.request(
        "/api/v1/crashes/\(fingerprint)/\(what)", method: .post, headers: [("content-type", "application/json")],
        body: body), isOwner: true)
    #expect(answer.status == 200)
  }

  @Test("a crash whose payload leads it to another group takes no other crash's regression with it")
  func moved() async throws {
    try await crash([1], "leak")
    try await change("leak", #"{"state":"resolved"}"#)
    try await crash([2], "leak", device: "e")
    try await crash([3], "leak", device: "f")
    try await crash([3], "leak", device: "f", payload: "#0 pay ()\n#1 main ()")
    let groups = try await rig.json("/crashes", [("since", "0")])["groups"]?.array ?? []
    #expect(groups.compactMap { $0["count"]?.int }.sorted() == [1, 2])
    #expect(groups.first { $0["count"] == 2 }?["state"] == "regressed")
  }

  @Test("a group that lost its only crash since is as resolved as before")
  func movedAlone() async throws {
    try await crash([1], "leak")
    try await change("leak", #"{"state":"resolved"}"#)
    try await crash([3], "leak", device: "f")
    try await crash([3], "leak", device: "f", payload: "#0 pay ()\n#1 main ()")
    let groups = try await rig.json("/crashes", [("since", "0")])["groups"]?.array ?? []
    #expect(groups.compactMap { $0["state"]?.string }.sorted() == ["open", "resolved"])
  }

  @Test(
    "a group of as many versions as are shown is judged by the version of each crash",
    arguments: [("2.0", "regressed"), ("1.77", "resolved")])
  func versions(version: String, state: String) async throws {
    for number in 0..<51 { try await crash([number], "leak", version: "1.\(number)") }
    try await change("leak", #"{"state":"resolved","build":"till 2.0"}"#)
    try await crash([51], "leak", version: version)
    #expect(try await group("leak")["state"]?.string == state)
  }

  @Test("an ignored group counts crashes that came since, and not those of a group that is merged into it")
  func merged() async throws {
    try await crash(Array(1...6), "leak")
    try await crash(Array(7...9), "ink")
    try await change("ink", #"{"state":"ignored","count":2}"#)
    let ink = try await group("ink")["fingerprint"]?.string ?? ""
    try await change("leak", #"{"into":"\#(ink)"}"#, "group")
    let merged = try await rig.json("/crashes/\(ink)")["group"]
    #expect(merged?["total"] == 9 && merged?["state"] == "ignored")
    try await crash([10], "leak", device: "e")
    try await crash([11], "ink", device: "e")
    #expect(try await rig.json("/crashes/\(ink)")["group"]?["state"] == "open")
  }

  @Test("an ignored group is open after the crashes that came since, also if those from before are erased")
  func erased() async throws {
    try await crash(Array(1...10), "leak")
    try await crash([11], "leak", device: "e")
    try await change("leak", #"{"state":"ignored","count":3}"#)
    var filter = ReportFilter(scope: .everything)
    filter.device = "d"
    while try await rig.collector.store.eraseNext(filter, after: 0) != nil {}
    let (index, store) = (CrashIndex(), rig.collector.store)
    let states = try await rig.collector.access.page.crashStates.all()
    func condition() async throws -> [CrashState.Condition] {
      #expect(try await index.refresh(store, time: rig.rig.time, states: states))
      return await index.since.values.map { $0.condition(isTimeOver: false) }
    }
    try await crash([12, 13], "leak", device: "e")
    #expect(try await condition() == [.ignored])
    try await crash([14], "leak", device: "e")
    #expect(try await condition() == [.open])
  }

  @Test("a state that another replica wrote is judged by crashes that were read before it was known here, too")
  func replica() async throws {
    try await crash([1], "leak")
    let fingerprint = try await group("leak")["fingerprint"]?.string ?? ""
    let first = try #require(await rig.collector.access.page.crashes.groups().values.first?.lastReport)
    try await crash([2], "leak")
    #expect(try await group("leak")["count"] == 2)
    let states = rig.collector.access.page.crashStates
    try await states.put(
      CrashState(
        fingerprint: fingerprint, condition: .resolved, who: "boss", changedTime: rig.rig.time.unixMilliseconds,
        report: first))
    #expect(try await group("leak")["state"] == "regressed")
    #expect(try await group("leak")["count"] == 2)
  }
}
