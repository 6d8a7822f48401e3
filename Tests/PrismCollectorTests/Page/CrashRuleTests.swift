import Foundation
import PrismHTTP
import PrismProtocol
import Testing

@testable import PrismCollector

@Suite("Groups of crashes that operators merge and split")
struct CrashRuleTests {
  private let rig: PageRig

  init() throws { rig = try PageRig() }

  private func crash(_ number: Int, _ frame: String, reason: String = "SIGSEGV") async throws {
    let members = "\"reason\":\"\(reason)\",\"frames\":[\"\(frame)\",\"main\"]"
    _ = try await rig.collector.store.take(StoreRig.packet([number], type: "appCrash", members: { _ in members }))
  }

  /// The counts of the groups by their innermost function, or by their reason.
  private func counts(_ member: String = "frame") async throws -> [String: Int] {
    let groups = try #require(try await rig.json("/crashes", [("since", "0")])["groups"]?.array)
    return Dictionary(groups.map { ($0[member]?.string ?? "", $0["count"]?.int ?? 0) }) { $0 + $1 }
  }

  private func fingerprint(_ frame: String) async throws -> String {
    let groups = try #require(try await rig.json("/crashes", [("since", "0")])["groups"]?.array)
    return try #require(groups.first { $0["frame"]?.string == frame }?["fingerprint"]?.string)
  }

  private func regroup(_ fingerprint: String, _ body: String) async -> Int {
    await rig.collector.answerReader(
      PageRig.request(
        "/api/v1/crashes/\(fingerprint)/group", method: .post, headers: [("content-type", "application/json")],
        body: body),
      isOwner: true
    ).status
  }

  @Test("a merged group is counted with the other one, its later crashes too, until the rule ends")
  func merge() async throws {
    try await crash(1, "pay")
    try await crash(2, "charge")
    let (pay, charge) = (try await fingerprint("pay"), try await fingerprint("charge"))
    #expect(await regroup(charge, #"{"into":"\#(pay)"}"#) == 200)
    #expect(try await counts() == ["pay": 2])
    try await crash(3, "charge")
    #expect(try await counts() == ["pay": 3])
    #expect(await rig.ask("/crashes/\(charge)").status == 404)
    #expect(try await rig.json("/crashes/\(pay)")["groupedBy"]?.array == [.string(charge)])
    #expect(await regroup(pay, #"{"into":"\#(charge)"}"#) == 404, "there is no such group now")
    #expect(await regroup(charge, #"{"into":null}"#) == 200)
    #expect(try await counts() == ["pay": 1, "charge": 2])
    #expect(await regroup(charge, #"{"into":null}"#) == 404)
  }

  @Test("a group is split by the words of its crashes, and whole again once the rule ends")
  func splitByWords() async throws {
    for (number, reason) in ["no paper in 1", "no ink", "no paper in 2"].enumerated() {
      try await crash(number, "print", reason: reason)
    }
    let printing = try await fingerprint("print")
    #expect(await regroup(printing, #"{"splitBy":"words"}"#) == 200)
    #expect(try await counts("reason") == ["no paper in 1": 2, "no ink": 1])
    try await crash(4, "print", reason: "no ink")
    #expect(try await counts("reason") == ["no paper in 1": 2, "no ink": 2])
    let child = try await fingerprint("print")
    #expect(try await rig.json("/crashes/\(child)")["groupedBy"]?.array == [.string(printing)])
    #expect(await regroup(printing, #"{"splitBy":null}"#) == 200)
    #expect(try await counts() == ["print": 4])
  }

  @Test("a group is split by all its frames, where the innermost ones are equal")
  func splitByFrames() async throws {
    for number in 1...2 {
      let frames = (1...7).map { "\"f\($0)\"" } + ["\"caller\(["One", "Two"][number - 1])\""]
      let members = "\"frames\":[\(frames.joined(separator: ","))]"
      _ = try await rig.collector.store.take(StoreRig.packet([number], type: "appCrash", members: { _ in members }))
    }
    #expect(try await counts() == ["f1": 2])
    #expect(await regroup(try await fingerprint("f1"), #"{"splitBy":"frames"}"#) == 200)
    let groups = try #require(try await rig.json("/crashes", [("since", "0")])["groups"]?.array)
    #expect(groups.compactMap { $0["count"]?.int } == [1, 1])
  }

  @Test(
    "a body that is no rule is refused",
    arguments: ["{}", "[]", #"{"into":7}"#, #"{"splitBy":"build"}"#, #"{"into":null,"splitBy":null}"#, #"{"to":"x"}"#])
  func bodies(body: String) async throws {
    try await crash(1, "pay")
    #expect(await regroup(try await fingerprint("pay"), body) == 400)
  }

  @Test("a group is not merged into itself; rules that lead in a circle end")
  func circle() async throws {
    try await crash(1, "pay")
    let pay = try await fingerprint("pay")
    #expect(await regroup(pay, #"{"into":"\#(pay)"}"#) == 400)
    #expect(await regroup(pay, #"{"into":"0000000000000000"}"#) == 404)
    let rules = CrashRules(rules: ["a": .into("b"), "b": .into("a")])
    #expect(rules.leads("a", to: "b") && rules.leads("a", to: "c"))
    let stored = try #require(try await rig.collector.store.page(ReportFilter(scope: .everything)).first)
    var looped = CrashReport(stored)
    looped.fingerprint = CrashFingerprint(text: "a")
    #expect(rules.path(of: looped).count < 20)
  }

  @Test("a rule of earlier rules of grouping is about the groups of the present ones")
  func moved() async throws {
    try await crash(1, "pay")
    try await crash(2, "charge")
    let (pay, charge) = (try await fingerprint("pay"), try await fingerprint("charge"))
    #expect(await regroup(charge, #"{"into":"\#(pay)"}"#) == 200)
    let store = rig.collector.access.page.crashStates
    let states = try await store.all()
    // As an earlier version would have left them, under its fingerprints.
    for (state, old) in states.map({ ($0, $0.fingerprint == pay ? "old-pay" : "old-charge") }) {
      var (earlier, now) = (
        CrashState(fingerprint: old, condition: .open, who: "", changedTime: 1, report: 0, facts: state.facts), state
      )
      earlier.facts.rules = 1
      if state.facts.rule != nil { earlier.facts.rule = .into("old-pay") }
      now.facts.rule = nil
      try await store.put(earlier)
      try await store.put(now)
    }
    #expect(states.count == 2)
    #expect(try await counts() == ["pay": 2])
  }

  @Test("viewers make no rule")
  func rights() async throws {
    try await crash(1, "pay")
    let viewer = try await rig.signIn("viewer-token-of-tests")
    let answer = await rig.answer(
      PageRig.request(
        "/api/v1/crashes/\(try await fingerprint("pay"))/group", method: .post,
        headers: [("cookie", viewer.cookie), ("x-prism-change", viewer.change), ("content-type", "application/json")],
        body: #"{"splitBy":"words"}"#))
    #expect(answer.status == 403)
  }
}
