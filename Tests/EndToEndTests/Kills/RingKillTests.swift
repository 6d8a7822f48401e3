import Foundation
import PrismClient
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Synchronization
import Testing

/// A ring that wraps, a trigger that asks first, one that is declined, and questions while the daemon and the collector are
/// killed, on the disk and in memory. `PRISM_E2E_KILLS=500` for the long form, `PRISM_SEED=…` for the same kills again.
@Suite struct RingKillTests {
  private static let (before, after, perQuestion) = (20, 3, 10)
  private static func shop(_ keep: String) -> String {
    """
    url: URL
    periodicTimerSecond: 1
    recordIntervalSecond: 1
    monitorList: [{type: appCrash}, {type: "*", keep: \(keep)}]
    ring: {maxMByte: 1, maxMemoryMByte: 1}
    triggers:
      - {name: crash, on: appCrash, types: [log], before: \(before), after: \(after), everySecond: 0, maxMByteDay: 1024, maxDevices: 1}
      - {name: taken, on: appCrash, types: [trace], before: 5, everySecond: 0, maxMByteDay: 1024, maxDevices: 1}
    """
  }
  /// Fewer than a device's table of commands holds.
  private static let questionsMax = 900
  private static let kills = Seed.number("PRISM_E2E_KILLS") ?? 8

  /// The reports that were answered, and those that must leave for it.
  private struct Known {
    var crashes = 0, lines = 0, traces = 0
    var kept: [Int] = [], gone: [Int] = []
    var follow = 0
    var isOver = false

    mutating func stored(lines numbers: Range<Int>) {
      lines = numbers.upperBound
      for number in numbers {
        if follow > 0 { gone.append(number) } else { kept.append(number) }
        follow = max(0, follow - 1)
      }
    }

    mutating func crashed() {
      gone += kept.suffix(RingKillTests.before)
      kept.removeLast(min(kept.count, RingKillTests.before))
      (crashes, follow) = (crashes + 1, RingKillTests.after)
    }
  }

  private final class Course: Sendable {
    private let state = Mutex(Known())
    var known: Known { state.withLock { $0 } }
    func note(_ change: (inout Known) -> Void) { state.withLock { change(&$0) } }
  }

  @Test(
    "after kills at random points what was let go arrived once, and the ledger balances",
    arguments: ["ring", "memory"])
  func exactlyOnce(keep: String) async throws {
    let seed = Seed.next("RingKillTests, \(keep), \(Self.kills) kills")
    let folder = TemporaryFolder(in: "/dev/shm")
    let extra = "ask: {allow: [trace]}\nmemory: \(folder.path)\n"
    try await withHarness(namespaces: ["shop": Self.shop(keep)], extra: extra) { harness in
      try await harness.startCollector()
      try Self.takePlace(harness)
      try await harness.startDaemon()
      let course = Course()
      let asked = try await withThrowingTaskGroup(of: Int?.self) { group in
        group.addTask {
          try await Self.write(harness, course, SeededRandom(seed: seed &+ 1))
          return nil
        }
        group.addTask { try await Self.ask(harness, course) }
        group.addTask {
          try await Self.killAtRandom(harness, course, SeededRandom(seed: seed &+ 2))
          return nil
        }
        return try await group.compactMap(\.self).reduce(0, +)
      }
      try await waitUntil("every question has ended", otherwise: harness.daemonLog.suffix(2000).description) {
        try await harness.answers().count { $0.value.state.isFinal } == asked
      }
      try await harness.waitUntilSent(["shop"])
      try await Self.check(harness, course.known, asked)
    }
  }

  /// Another device has the one place of the trigger `taken`.
  private static func takePlace(_ harness: Harness) throws {
    let fleet = try SQLiteConnection(.init(path: harness.collectorState + "/fleet.db"))
    let end = Int(Date().timeIntervalSince1970) * 1000 + 24 * 3_600_000
    try fleet.execute("INSERT INTO trigger_windows VALUES ('shop', 'taken', 1, \(end))")
    try fleet.execute("INSERT INTO trigger_devices VALUES ('shop', 'taken', 'other')")
  }

  /// One program: what has no answer is sent again under the same ids, until it has.
  private static func write(_ harness: Harness, _ course: Course, _ seeded: SeededRandom) async throws {
    var random = seeded
    let client = harness.client()
    func send(_ type: String, _ numbers: Range<Int>) async throws {
      let reports = numbers.map { number in
        Report(
          ReportType(type)!, in: NamespaceName("shop")!,
          meta: ["n": .int(number), "pad": .string(String(repeating: "x", count: number * 37 % 600))],
          id: ReportID("\(type)-\(number)"))
      }
      while true {
        var isWhole = false
        do throws(ClientError) {
          isWhole = try await client.report(contentsOf: reports).allSatisfy {
            if case .stored = $0 { true } else { false }
          }
        } catch .connectionLost, .unreachable {
        } catch { throw error }
        if isWhole { return }
        try await Task.sleep(for: .milliseconds(10))
      }
    }
    while !course.known.isOver {
      let known = course.known
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        try await send("appCrash", known.crashes..<known.crashes + 1)
        course.note { $0.crashed() }
      case 1...3:
        let numbers = known.traces..<known.traces + Int.random(in: 1...20, using: &random)
        try await send("trace", numbers)
        course.note { $0.traces = numbers.upperBound }
      default:
        let numbers = known.lines..<known.lines + Int.random(in: 1...60, using: &random)
        try await send("log", numbers)
        course.note { $0.stored(lines: numbers) }
      }
    }
  }

  /// Asks for the newest reports that it did not ask for. - Returns: how many questions there are.
  private static func ask(_ harness: Harness, _ course: Course) async throws -> Int {
    var (count, end) = (0, 0)
    while !course.known.isOver, count < questionsMax {
      let traces = course.known.traces
      guard traces >= end + perQuestion else {
        try await Task.sleep(for: .milliseconds(10))
        continue
      }
      end = traces
      let args = #"{"type":"trace","rows":true,"field":"n","from":\#(end - perQuestion),"to":\#(end - 1)}"#
      try await harness.ask("q\(count)-\(end - perQuestion)", args)
      count += 1
      let next = course.known.traces
      while !course.known.isOver, course.known.traces < next + 200 { try await Task.sleep(for: .milliseconds(10)) }
    }
    return count
  }

  private static func killAtRandom(_ harness: Harness, _ course: Course, _ seeded: SeededRandom) async throws {
    defer { course.note { $0.isOver = true } }
    var (random, daemonKills) = (seeded, 0)
    while daemonKills < kills {
      let goal = course.known.lines + Int.random(in: 1...3000, using: &random)
      try await waitUntil("lines are stored") { course.known.lines >= goal }
      if random.oneIn(3) {
        try await harness.endCollector(SIGKILL)
        try await harness.startCollector()
      } else {
        daemonKills += 1
        try await harness.endDaemon(SIGKILL)
        try await harness.startDaemon()
      }
    }
  }

  private static func numbers(_ harness: Harness, of type: String) async throws -> [Int] {
    try await harness.query(
      "SELECT json_extract(meta, '$.n') FROM report WHERE namespace = 'shop' AND type = '\(type)' ORDER BY id"
    ).compactMap { Int($0[0]) }
  }

  private static func check(_ harness: Harness, _ known: Known, _ asked: Int) async throws {
    let status = try await harness.status()
    Harness.expectIdentity(status)
    #expect(Harness.rows(status, "shop", "meta", "overwritten") > 0, "the ring wraps")
    #expect(Harness.rows(status, "shop", "meta", "corrupt") == 0)
    #expect(try await numbers(harness, of: "appCrash").sorted() == Array(0..<known.crashes))
    let lines = try await numbers(harness, of: "log")
    #expect(lines.sorted() == known.gone.sorted(), "each line that was let go, once")
    let traces = try await numbers(harness, of: "trace")
    #expect(Set(traces).count == traces.count, "no trace leaves twice")
    var (rows, done) = (0, 0)
    for (id, answer) in try await harness.answers() {
      let first = Int(id.split(separator: "-").last ?? "") ?? -1
      let arrived = traces.count { (first..<first + perQuestion).contains($0) }
      let answered = answer.state == .done ? answer.result?["rows"]?.int ?? -1 : 0
      #expect(arrived == answered, "\(id): \(arrived) arrived, \(answer)")
      (rows, done) = (rows + arrived, done + (answer.state == .done ? 1 : 0))
    }
    #expect(rows == traces.count, "no trace leaves that was not asked for")
    #expect(!harness.daemonLog.contains("is set aside"))
    // The answers of the collector, which was killed between them: each trigger has its one device.
    let fleet = try SQLiteConnection(.init(path: harness.collectorState + "/fleet.db"))
    let counted = try fleet.firstText(
      """
      SELECT group_concat(rule || ' ' || devices || ' ' || (SELECT group_concat(device) FROM trigger_devices d
        WHERE d.rule = w.rule)) FROM (SELECT * FROM trigger_windows ORDER BY rule) w
      """)
    #expect(counted == "crash 1 e2e-device,taken 1 other")
    let taken = try #require(status["namespaces"]?["shop"]?["triggers"]?["taken"])
    #expect(taken["declined"]?.int ?? 0 > 0 && taken["rows"] == 0, "\(taken.text)")
    print(
      "RingKillTests: \(known.lines) lines, \(known.crashes) crashes let \(lines.count) go; \(done) of \(asked) questions done, \(rows) reports"
    )
  }
}
