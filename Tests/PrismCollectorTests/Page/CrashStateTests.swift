import Foundation
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("States of crashes")
struct CrashStateTests {
  private static let stack = "#0 total ()\n#1 main ()"

  /// One group of crashes, and its fingerprint.
  private static func begin(_ rig: PageRig) async throws -> String {
    try await crash(rig, 1, build: "1.0")
    return try #require(try await groups(rig).first?["fingerprint"]?.string)
  }

  private static func crash(
    _ rig: PageRig, _ number: Int, build: String, device: String = "d", payload: String? = stack
  ) async throws {
    let packet = try StoreRig.packet(
      [number], device: device, type: "appCrash", payload: payload.map { Array($0.utf8) },
      members: { _ in #""APP_NAME":"shop","APP_VERSION":"\#(build)""# })
    _ = try await rig.collector.store.take(packet)
  }

  private static func groups(_ rig: PageRig, _ state: String = "", since: Int64 = 0) async throws -> [JSONValue] {
    try await rig.json("/crashes", [("since", String(since)), ("state", state)])["groups"]?.array ?? []
  }

  private static func change(_ rig: PageRig, _ fingerprint: String, _ body: String) async -> HTTPResponse {
    await rig.collector.answerReader(
      PageRig.request(
        "/api/v1/crashes/\(fingerprint)/state", method: .post, headers: [("content-type", "application/json")],
        body: body), isOwner: true)
  }

  @Test("a group is open, resolved, regressed with a later report, and open again; lists select by state")
  func life() async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.begin(rig)
    let states = { try await Self.groups(rig).compactMap { $0["state"]?.string } }
    let selected = { (state: String) in try await Self.groups(rig, state).count }
    #expect(try await states() == ["open"])
    #expect(await Self.change(rig, fingerprint, #"{"state":"resolved"}"#).status == 200)
    #expect(try await states() == ["resolved"])
    #expect(try await selected("resolved") == 1)
    #expect(try await selected("unresolved") == 0)
    try await Self.crash(rig, 2, build: "1.0")
    #expect(try await states() == ["regressed"])
    #expect(try await selected("unresolved") == 1)
    #expect(try await selected("open") == 0)
    let detail = try await rig.json("/crashes/\(fingerprint)")["group"]
    #expect(detail?["state"] == "regressed" && detail?["change"]?["regressedTime"]?.int != nil)
    #expect(rig.rig.logged.count { $0.contains("a resolved crash is back") } == 1, "once, however often it is read")
    #expect(await Self.change(rig, fingerprint, #"{"state":"open"}"#).status == 200)
    #expect(try await states() == ["open"])
    try await Self.crash(rig, 3, build: "1.0")
    #expect(try await states() == ["open"], "an open group can't regress")
    #expect(await Self.change(rig, fingerprint, #"{"state":"resolved"}"#).status == 200)
    #expect(try await states() == ["resolved"], "reports from before are no regression")
  }

  @Test(
    "with the build of the fix, old builds may go on crashing; that build and new ones may not",
    arguments: [("1.0", "resolved"), ("2.0", "regressed"), ("3.0", "regressed")])
  func builds(build: String, state: String) async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.begin(rig)
    #expect(await Self.change(rig, fingerprint, #"{"state":"resolved","build":"shop 2.0"}"#).status == 200)
    try await Self.crash(rig, 2, build: build)
    #expect(try await Self.groups(rig).compactMap { $0["state"]?.string } == [state])
  }

  @Test("a row with the frames of a report that was there before is no later report")
  func secondRow() async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.begin(rig)
    try await Self.crash(rig, 2, build: "1.0", payload: nil)
    #expect(await Self.change(rig, fingerprint, #"{"state":"resolved"}"#).status == 200)
    try await Self.crash(rig, 2, build: "1.0")
    let group = try #require(try await Self.groups(rig).first)
    #expect(group["state"] == "resolved" && group["count"] == 2)
    try await Self.crash(rig, 3, build: "1.0")
    #expect(try await Self.groups(rig).first?["state"] == "regressed")
  }

  @Test("a change is a line of the log with who and what; viewers, and sessions without their token, change nothing")
  func rights() async throws {
    let rig = try PageRig()
    let path = "/api/v1/crashes/\(try await Self.begin(rig))/state"
    let post = { (headers: [(name: String, value: String)]) in
      await rig.answer(
        PageRig.request(
          path, method: .post, headers: headers + [("content-type", "application/json")],
          body: #"{"state":"resolved"}"#)
      ).status
    }
    let (viewer, boss) = (
      try await rig.signIn("viewer-token-of-tests"), try await rig.signIn("operator-token-of-tests")
    )
    #expect(await post([("cookie", viewer.cookie), ("x-prism-change", viewer.change)]) == 403)
    #expect(await post([("cookie", boss.cookie)]) == 403)
    #expect(try await Self.groups(rig, "open").count == 1)
    #expect(!rig.rig.logged.contains { $0.contains("changed by an operator") })
    #expect(await post([("cookie", boss.cookie), ("x-prism-change", boss.change)]) == 200)
    let line = try #require(rig.rig.logged.first { $0.contains("changed by an operator") })
    #expect(line.contains("who=\"operator ") && line.contains("resolved a crash") && line.contains("address=127.0.0.1"))
    #expect(try await Self.groups(rig).first?["change"]?["who"]?.string?.hasPrefix("operator ") == true)
  }

  @Test(
    "what is no change is refused, with the members that there are",
    arguments: [
      ("{}", 400), ("[]", 400), ("", 400), (#"{"state":"regressed"}"#, 400), (#"{"state":"gone"}"#, 400),
      (#"{"state":"resolved","build":7}"#, 400), (#"{"state":"resolved","build":""}"#, 400),
      (#"{"state":"resolved","bild":"x"}"#, 400), (#"{"state":"resolved","build":null}"#, 200),
      (#"{"state":"open","build":"x"}"#, 400), (#"{"state":"ignored"}"#, 400), (#"{"state":"open","count":7}"#, 400),
      (#"{"state":"ignored","count":0}"#, 400), (#"{"state":"ignored","until":5}"#, 400),
      (#"{"state":"ignored","count":"7"}"#, 400), (#"{"state":"ignored","count":7}"#, 200),
      (#"{"state":"ignored","until":9999999999999}"#, 200), (#"{"link":"javascript:alert(1)"}"#, 400),
      (#"{"assignee":""}"#, 400), (#"{"assignee":7}"#, 400), (#"{"comment":null}"#, 200), (#"{"assignee":null}"#, 200),
    ])
  func bodies(body: String, status: Int) async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.begin(rig)
    #expect(await Self.change(rig, fingerprint, body).status == status)
    #expect(await Self.change(rig, "0000000000000000", #"{"state":"resolved"}"#).status == 404)
  }

  @Test("devices and count of a list are both of the chosen time")
  func chosenTime() async throws {
    let rig = try PageRig()
    for device in ["a", "b", "c"] { try await Self.crash(rig, 1, build: "1", device: device) }
    rig.rig.time.advance(by: .seconds(2 * 86_400))
    try await Self.crash(rig, 2, build: "1", device: "c")
    let since = rig.rig.time.unixMilliseconds - 86_400_000
    let group = try #require(try await Self.groups(rig, since: since).first)
    #expect(group["count"] == 1 && group["devices"] == 1)
    #expect(group["total"] == 4 && group["totalDevices"] == 3)
  }

  @Test("a crash that happened before the resolve, and arrives after it, is no regression; one that happens later is")
  func late() async throws {
    let rig = try PageRig()
    let start = Int(rig.rig.time.unixMilliseconds)
    let fingerprint = try await Self.begin(rig)
    rig.rig.time.advance(by: .seconds(3600))
    #expect(await Self.change(rig, fingerprint, #"{"state":"resolved"}"#).status == 200)
    rig.rig.time.advance(by: .seconds(3600))
    try await Self.crash(rig, start + 1_800_000, build: "1.0")
    #expect(try await Self.groups(rig).first?["state"] == "resolved")
    try await Self.crash(rig, start + 5_400_000, build: "1.0")
    #expect(try await Self.groups(rig).first?["state"] == "regressed")
  }

  @Test("an ignored group is open again after a number of crashes more, or at its time, and is not shown until then")
  func ignored() async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.begin(rig)
    let states = { try await Self.groups(rig).compactMap { $0["state"]?.string } }
    #expect(await Self.change(rig, fingerprint, #"{"state":"ignored","count":2}"#).status == 200)
    try await Self.crash(rig, 2, build: "9.0")
    #expect(try await states() == ["ignored"])
    #expect(try await Self.groups(rig, "unresolved").isEmpty)
    #expect(try await Self.groups(rig, "ignored").first?["change"]?["count"] == 2)
    try await Self.crash(rig, 3, build: "1.0")
    #expect(try await CrashWatch(rig.collector).look() == false)
    #expect(rig.rig.logged.count { $0.contains("an ignored crash is open again") } == 1)
    #expect(try await states() == ["open"])
    let until = rig.rig.time.unixMilliseconds + 60_000
    #expect(await Self.change(rig, fingerprint, #"{"state":"ignored","until":\#(until)}"#).status == 200)
    try await Self.crash(rig, 4, build: "1.0")
    #expect(try await states() == ["ignored"])
    // A clock that is ahead for a while ends nothing.
    rig.rig.time.stepWallClock(milliseconds: 30 * 86_400_000)
    #expect(try await states() == ["ignored"])
    rig.rig.time.stepWallClock(milliseconds: -30 * 86_400_000)
    #expect(try await states() == ["ignored"])
    rig.rig.time.advance(by: .seconds(60))
    #expect(try await states() == ["ignored"])
    rig.rig.time.advance(by: .seconds(3600))
    #expect(try await states() == ["open"])
  }

  @Test("assignee, link and comments are kept with who and when, beside any state, and change no state")
  func notes() async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.begin(rig)
    let detail = { try await rig.json("/crashes/\(fingerprint)") }
    #expect(await Self.change(rig, fingerprint, #"{"assignee":"Ann","comment":"seen"}"#).status == 200)
    #expect(try await detail()["group"]?["change"] == .null, "no state was changed")
    #expect(await Self.change(rig, fingerprint, #"{"state":"resolved","link":"https://t/7"}"#).status == 200)
    rig.rig.time.advance(by: .seconds(1))
    for number in 1...CrashFacts.commentsMax {
      #expect(await Self.change(rig, fingerprint, #"{"comment":"c\#(number)"}"#).status == 200)
    }
    let found = try await detail()
    #expect(found["group"]?["state"] == "resolved" && found["group"]?["link"]?["text"] == "https://t/7")
    let assignee = found["group"]?["assignee"]
    #expect(assignee?["text"] == "Ann" && assignee?["who"] == "owner")
    #expect(assignee?["time"]?.int.map { Int64($0) } == rig.rig.time.unixMilliseconds - 1000)
    let comments = try #require(found["comments"]?.array)
    #expect(comments.count == CrashFacts.commentsMax && comments.first?["text"] == "c1", "the newest ones")
    #expect(await Self.change(rig, fingerprint, #"{"assignee":null}"#).status == 200)
    #expect(try await detail()["group"]?["assignee"] == .null)
    #expect(try await Self.groups(rig).first?["link"]?["text"] == "https://t/7")
  }

  @Test("a state of earlier rules is found by its report, under the group of the present rules")
  func regrouped() async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.begin(rig)
    #expect(await Self.change(rig, fingerprint, #"{"state":"resolved","comment":"x"}"#).status == 200)
    let store = rig.collector.access.page.crashStates
    let state = try #require(try await store.all().first)
    var old = CrashState(
      fingerprint: "0123456789abcdef", condition: .resolved, who: "boss", changedTime: state.changedTime + 1,
      report: state.report, facts: state.facts)
    old.facts.rules = CrashFrameTable.version - 1
    try await store.put(old)
    #expect(try await Self.groups(rig).first?["change"]?["who"] == "boss")
    #expect(await Self.change(rig, fingerprint, #"{"state":"open"}"#).status == 200)
    old.changedTime -= 2
    try await store.put(old)
    #expect(try await Self.groups(rig).first?["state"] == "open", "the newest word counts")
    try await Self.crash(rig, 2, build: "1.0")
    #expect(try await Self.groups(rig).first?["count"] == 2)
  }

  @Test(
    "states are at rest for every process, and only one of them notes a regression", arguments: StoreRig.Fleet.allCases)
  func stores(kind: StoreRig.Fleet) async throws {
    let rig = StoreRig()
    let database = try await rig.fleet(kind)
    let stores = [CrashStateStore(database), CrashStateStore(database)]
    var facts = CrashFacts(builds: ["a", "b\n"])
    facts.assignee = .init(text: "Ann", who: "operator é", time: 8)
    facts.link = .init(text: "https://tickets/7", who: "boss", time: 9)
    facts.add(.init(text: "a \"leak\"", who: "boss", time: 10))
    facts.ignored = .init(more: 100, moreDevices: 7, until: 1 << 50)
    facts.rule = .into("0123456789abcdef")
    facts.sample = 5
    var state = CrashState(
      fingerprint: "f", condition: .resolved, who: "operator é", changedTime: 7, report: 9, build: "shop \"2\"",
      facts: facts)
    try await stores[0].put(state)
    #expect(try await stores[1].all() == [state])
    var older = state
    older.changedTime = 6
    #expect(try await stores[1].mark(older, as: .regressed, at: 10) == false, "an operator changed it since")
    #expect(try await stores[1].mark(state, as: .regressed, at: 10))
    #expect(try await stores[0].mark(state, as: .regressed, at: 11) == false)
    (state.condition, state.regressedTime) = (.regressed, 10)
    #expect(try await stores[0].all() == [state])
    (state.condition, state.regressedTime, state.build) = (.open, nil, nil)
    try await stores[1].put(state)
    #expect(try await stores[0].all() == [state])
  }
}
