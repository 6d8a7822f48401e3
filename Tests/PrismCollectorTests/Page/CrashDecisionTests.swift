import PrismOutputs
import Testing

@testable import PrismCollector

@Suite("What crashes do to the state of their group")
struct CrashDecisionTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var condition = CrashState.Condition.resolved
    var build: String?
    var known: [String] = []
    /// The name of the build that crashed, the id of its first report, and when it happened.
    var name = "till 1.0", report: Int64 = 11, happened: Int64 = 1000
    var ignored: CrashFacts.Ignored?
    /// They have ids in a row.
    var crashes = 1, devices = 1
    let expected: CrashState.Condition
  }

  /// Each group was resolved or ignored at 1000, when the newest report was 10.
  private static let cases = [
    Case(testDescription: "a crash that happened since", expected: .regressed),
    Case(testDescription: "that happened before, and came late", happened: 999, expected: .resolved),
    Case(testDescription: "that was there before", report: 10, expected: .resolved),
    Case(testDescription: "the build of the fix", build: "till 1.10", name: "till 1.10", expected: .regressed),
    Case(
      testDescription: "a later version", build: "till 1.9", known: ["till 1.10"], name: "till 1.10",
      expected: .regressed),
    Case(testDescription: "an earlier version", build: "till 1.10", name: "till 1.9", expected: .resolved),
    Case(
      testDescription: "a later version, late", build: "till 1.9", name: "till 1.10", happened: 999, expected: .resolved
    ),
    Case(testDescription: "the version alone is named", build: "1.10", name: "till 1.9", expected: .resolved),
    Case(
      testDescription: "the version alone is named, and a later one", build: "1.9", name: "till 1.9.1",
      expected: .regressed),
    Case(testDescription: "a candidate before the fix", build: "till 2.0", name: "till 2.0-rc1", expected: .resolved),
    Case(
      testDescription: "no number, seen before", build: "till blue", known: ["till red"], name: "till red",
      expected: .resolved),
    Case(
      testDescription: "no number, new", build: "till blue", known: ["till red"], name: "till green",
      expected: .regressed),
    Case(
      testDescription: "another app, seen before", build: "till 2", known: ["shop 3"], name: "shop 3",
      expected: .resolved),
    Case(testDescription: "another app, new", build: "till 2", name: "shop 1", expected: .regressed),
    Case(
      testDescription: "an app without a version, seen before", build: "till 2", known: ["till"], name: "till",
      expected: .resolved),
    Case(testDescription: "no version", build: "till 2.0", name: "till", expected: .resolved),
    Case(testDescription: "no version, and no build is named", name: "till", expected: .regressed),
    Case(
      testDescription: "an earlier version with its build", build: "till 2.0 (77)", known: ["till 1.8 (60)"],
      name: "till 1.9 (70)", expected: .resolved),
    Case(
      testDescription: "a later version with its build", build: "2.0 (77)", name: "till 2.0 (78)", expected: .regressed),
    Case(
      testDescription: "a later version, whose build is a greater number", build: "till 2.0 (77)",
      name: "till 2.1 (80)", expected: .regressed),
    Case(
      testDescription: "an app with a blank", build: "Shop Till 2.0", name: "Shop Till 1.9", expected: .resolved),
    Case(testDescription: "an earlier name", build: "till 2.0", name: "till release-1.9", expected: .resolved),
    Case(testDescription: "an earlier letter", build: "till R2.0", name: "till R1.9", expected: .resolved),
    Case(
      testDescription: "an app with a number", build: "app2 9", known: ["app2 1"], name: "till 1", expected: .regressed),
    Case(testDescription: "an open group", condition: .open, expected: .open),
    Case(testDescription: "a regressed group", condition: .regressed, happened: 0, expected: .regressed),
    Case(
      testDescription: "ignored, one less", condition: .ignored, ignored: .init(more: 3), crashes: 2, expected: .ignored
    ),
    Case(
      testDescription: "ignored, as many more", condition: .ignored, ignored: .init(more: 3), crashes: 3,
      expected: .open),
    Case(
      testDescription: "ignored, crashes that were there before", condition: .ignored, report: 1,
      ignored: .init(more: 1, moreDevices: 1), crashes: 10, devices: 10, expected: .ignored),
    Case(
      testDescription: "ignored, one device less", condition: .ignored, ignored: .init(moreDevices: 3), crashes: 9,
      devices: 2, expected: .ignored),
    Case(
      testDescription: "ignored, as many devices more", condition: .ignored, ignored: .init(moreDevices: 3),
      crashes: 3, devices: 3, expected: .open),
    Case(testDescription: "ignored until later", condition: .ignored, ignored: .init(until: 5001), expected: .ignored),
    Case(testDescription: "ignored until now", condition: .ignored, ignored: .init(until: 5000), expected: .open),
    Case(
      testDescription: "ignored until the first of both", condition: .ignored,
      ignored: .init(more: 1, until: 9000), expected: .open),
  ]

  @Test("a state changes by what happened since, in builds that have the fix", arguments: cases)
  func decision(test: Case) {
    var state = CrashState(
      fingerprint: "f", condition: test.condition, who: "boss", changedTime: 1000, report: 10, build: test.build)
    (state.facts.builds, state.facts.ignored) = (test.known, test.ignored)
    var since = CrashSince(state)
    for place in 0..<Int64(test.crashes) {
      let device = "d\(place % Int64(test.devices))"
      since.count(Self.crash(test.name, report: test.report + place, happened: test.happened, device: device), 1)
    }
    let isTimeOver = test.ignored?.until.map { 5000 >= $0 } ?? false
    #expect(since.condition(isTimeOver: isTimeOver) == test.expected)
  }

  private static func crash(_ name: String, report: Int64, happened: Int64, device: String = "d") -> CrashReport {
    // The version begins with the first word that has a number.
    let words = name.split(separator: " ")
    let place = words.firstIndex { $0.contains(where: \.isNumber) } ?? min(1, words.count)
    let (app, version) = (words[..<place].joined(separator: " "), words[place...].joined(separator: " "))
    let meta = #"{"APP_NAME":"\#(app)","APP_VERSION":"\#(version)"}"#
    return CrashReport(
      StoredReport(
        id: report, device: device, namespace: "prism", kind: "meta", type: "appCrash", reportID: "r\(report)",
        createdTime: nil, receivedTime: happened, packetID: "", chainIsBroken: false,
        meta: Array(meta.utf8)))
  }

  @Test("a crash that is taken out of its group takes no other crash with it")
  func takenOut() {
    var since = CrashSince(
      CrashState(fingerprint: "f", condition: .resolved, who: "", changedTime: 1000, report: 10, build: "till 1.0"))
    let crashes = [11, 12].map { Self.crash("till 1.0", report: $0, happened: 1000 + $0) }
    for crash in crashes { since.count(crash, 1) }
    since.count(crashes[1], -1)
    #expect(since.condition(isTimeOver: false) == .regressed)
    since.count(crashes[0], -1)
    #expect(since.condition(isTimeOver: false) == .resolved)
  }

  @Test("two crashes of two builds are not taken for one that is late and one that has the fix")
  func apart() {
    let state = CrashState(
      fingerprint: "f", condition: .resolved, who: "", changedTime: 1000, report: 10, build: "till 2.0")
    var since = CrashSince(state)
    since.count(Self.crash("till 1.0", report: 12, happened: 3000), 1)
    since.count(Self.crash("till 2.0", report: 13, happened: 500), 1)
    #expect(since.condition(isTimeOver: false) == .resolved)
  }

  @Test(
    "versions are compared as numbers",
    arguments: [
      ("1.9", "1.10"), ("1", "1.0.1"), ("1.2.3", "2"), ("v1.9", "v1.10"), ("2.0-rc1", "2.0"), ("2.0-rc1", "2.0-rc2"),
      ("2.0~rc1", "2.0"), ("2.0-beta.2", "2.0-beta.10"), ("2.0", "2.0-1"), ("2.0-1", "2.0-2"), ("9.9", "10"),
      ("2026.9.1", "2026.10.1"), ("1.0-rc3", "1.0-1"), ("release-1.9", "2.0"), ("R1.9", "R1.10"), ("1_9", "1_10"),
      ("1.9-SNAPSHOT", "1.9"), ("1.9 (70)", "1.9 (77)"), ("1.9 (77)", "1.10 (2)"), ("2.0rc1", "2.0"),
      ("2.0b2", "2.0rc1"),
      ("1.1.1j", "1.1.1k"), ("1.1.1", "1.1.1a"), ("18446744073709551616", "18446744073709551617"),
      ("9223372036854775808", "10000000000000000000"), ("v1.9-3-g5a", "v1.9-12-g1b"),
    ])
  func versions(lower: String, higher: String) throws {
    let (one, other) = (try #require(CrashVersion(lower[...])), try #require(CrashVersion(higher[...])))
    #expect(one < other && !(other < one))
  }

  @Test(
    "versions of one number are equal",
    arguments: [("1.0", "1"), ("1.0+build7", "1.0.0+build9"), ("v2", "2.0"), ("1_9", "1.09")])
  func equal(one: String, other: String) { #expect(CrashVersion(one[...]) == CrashVersion(other[...])) }

  @Test(
    "a text without numbers is no version",
    arguments: ["", "blue", "a1b2c3", "7f3a9c", "release"])
  func none(text: String) { #expect(CrashVersion(text[...]) == nil) }
}
