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
    #expect(!rig.rig.logged.contains { $0.contains("changed through the page") })
    #expect(await post([("cookie", boss.cookie), ("x-prism-change", boss.change)]) == 200)
    let line = try #require(rig.rig.logged.first { $0.contains("changed through the page") })
    #expect(line.contains("who=\"operator ") && line.contains("resolved a crash") && line.contains("address=127.0.0.1"))
    #expect(try await Self.groups(rig).first?["change"]?["who"]?.string?.hasPrefix("operator ") == true)
  }

  @Test(
    "what is no change is refused, with the members that there are",
    arguments: [
      ("{}", 400), ("[]", 400), ("", 400), (#"{"state":"regressed"}"#, 400), (#"{"state":"gone"}"#, 400),
      (#"{"state":"resolved","build":7}"#, 400), (#"{"state":"resolved","build":""}"#, 400),
      (#"{"state":"resolved","bild":"x"}"#, 400), (#"{"state":"resolved","build":null}"#, 200),
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

  @Test(
    "states are at rest for every process, and only one of them notes a regression", arguments: StoreRig.Fleet.allCases)
  func stores(kind: StoreRig.Fleet) async throws {
    let rig = StoreRig()
    let database = try await rig.fleet(kind)
    let stores = [CrashStateStore(database), CrashStateStore(database)]
    var state = CrashState(
      fingerprint: "f", condition: .resolved, who: "operator é", changedTime: 7, report: 9, build: "shop \"2\"",
      builds: ["a", "b\n"])
    try await stores[0].put(state)
    #expect(try await stores[1].all() == [state])
    var older = state
    older.changedTime = 6
    #expect(try await stores[1].markRegressed(older, at: 10) == false, "an operator changed it since")
    #expect(try await stores[1].markRegressed(state, at: 10))
    #expect(try await stores[0].markRegressed(state, at: 11) == false)
    (state.condition, state.regressedTime) = (.regressed, 10)
    #expect(try await stores[0].all() == [state])
    (state.condition, state.regressedTime, state.build) = (.open, nil, nil)
    try await stores[1].put(state)
    #expect(try await stores[0].all() == [state])
  }
}
