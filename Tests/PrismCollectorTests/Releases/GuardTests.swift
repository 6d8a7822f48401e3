import Glibc
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Guarded rollouts over a simulated fleet, and the test behind them (docs/releases.md, "The test").
@Suite struct GuardTests {
  private static let hour: Int64 = 3_600_000
  private static let start: Int64 = 1_800_000_000_000
  private static let rule = try! RolloutGuard(["hours": 24])

  /// A fleet of which some devices crash far more often than others, and a crash is likely to come again in the next hour.
  private struct Fleet {
    var random: SeededRandom
    let rates: [Double]
    private var isLooping: [Bool]
    private var share: [Int]

    init(devices: Int, seed: UInt64, rollout: Int64) {
      var random = SeededRandom(seed: seed)
      rates = (0..<devices).map { _ in
        // Twelve uniform numbers are about normal.
        let normal = (0..<12).reduce(-6.0) { sum, _ in sum + Double.random(in: 0..<1, using: &random) }
        return 0.004 * exp(normal)
      }
      self.random = random
      isLooping = Array(repeating: false, count: devices)
      share = (0..<devices).map { Rollout.share(of: "device-\($0)", in: rollout) }
    }

    /// Whether the device has what is rolled out.
    func isChosen(_ device: Int, percent: Int) -> Bool { share[device] < percent * 100 }

    mutating func hour(of device: Int, factor: Double) -> Int {
      let chance = min(0.9, isLooping[device] ? 0.6 : rates[device] * factor)
      isLooping[device] = Double.random(in: 0..<1, using: &random) < chance
      return isLooping[device] ? Int.random(in: 1...20, using: &random) : 0
    }
  }

  private static func report(_ device: Int, _ end: Int64, crashes: Int) -> ReleaseReport {
    var stored = StoredReport(
      id: 1, device: "device-\(device)", namespace: "shop", kind: "meta", type: "appHealth", reportID: "",
      createdTime: end,
      receivedTime: end, packetID: "", chainIsBroken: false, meta: [])
    let meta: JSONValue = [
      "book": "b", "number": 1, "seconds": 3600,
      "apps": [
        [
          "name": "pos", "version": "1", "seconds": 3600, "sessions": 1, "crashedSessions": .int(crashes),
          "crashes": .int(crashes),
        ]
      ],
    ]
    stored.meta = meta.bytes
    return ReleaseReport(stored)!
  }

  /// A guard of each rate.
  private static let rules = RolloutGuard.Rate.allCases.map { rate in
    try! RolloutGuard(rate == .reports ? ["rate": "reports", "type": "lag"] : ["rate": .string(rate.rawValue)])
  }

  /// Devices get the release by these steps, each for 12 hours. A crash is a report of the type `lag` too.
  /// - Returns: by guard, the percent at which it said that the release is worse; nil: it never did.
  private static func run(devices: Int, steps: [Int], factor: Double, seed: UInt64) -> [Int?] {
    var fleet = Fleet(devices: devices, seed: seed, rollout: Int64(seed % 1000))
    var (counts, ends) = (rules.map { GuardCount($0) }, rules.map { _ in Int?.none })
    var time = start
    for percent in steps {
      for _ in 0..<12 {
        time += hour
        for device in 0..<devices {
          let arm: GuardCount.Arm = fleet.isChosen(device, percent: percent) ? .chosen : .others
          let crashes = fleet.hour(of: device, factor: arm == .chosen ? factor : 1)
          let report = report(device, time, crashes: crashes)
          for place in counts.indices where ends[place] == nil {
            if rules[place].type != nil, crashes > 0 { counts[place].note(report.device, arm) }
            counts[place].take(report, arm)
          }
        }
        for place in counts.indices where ends[place] == nil {
          counts[place].end(before: time + GuardCount.look)
          if counts[place].verdict == .worse { ends[place] = percent }
        }
        if !ends.contains(nil) { return ends }
      }
    }
    return ends
  }

  @Test("a bad release is stopped before 15 % of the devices have it, in 10 of 10 runs, by a guard of each rate")
  func bad() {
    // Of fleets of 300 devices about one in some hundred ends later: its few chosen devices crash too seldom.
    let seed = SeededRandom.announcedSeed("GuardTests/bad")
    for run in 0..<10 {
      let ends = Self.run(devices: 600, steps: [2, 5, 10, 14, 20, 50], factor: 12, seed: seed &+ UInt64(run))
      for (rule, end) in zip(Self.rules, ends) { #expect(end ?? 100 < 15, "run \(run), \(rule.rate)") }
    }
  }

  @Test(
    "of 200 rollouts of an equal release less than 1 % are stopped, though devices differ and crash in loops, by each rate"
  )
  func equal() {
    let seed = SeededRandom.announcedSeed("GuardTests/equal")
    let runs = (0..<200).map { run in
      Self.run(devices: 60, steps: [5, 20, 50], factor: 1, seed: seed &+ UInt64(run))
    }
    for (place, rule) in Self.rules.enumerated() {
      let stopped = runs.count { $0[place] != nil }
      #expect(stopped < 2, "\(stopped) of 200, \(rule.rate)")
    }
  }

  @Test(
    "a report of the type counts once for its device and for the side that sent it; another type's hours are no event")
  func reports() {
    let end = { (hour: Int) in Self.start + Int64(hour) * Self.hour }
    var count = GuardCount(Self.rules.first { $0.rate == .reports }!)
    count.take(Self.report(0, end(1), crashes: 9), .chosen)
    count.note("device-1", .others)
    count.take(Self.report(1, end(1), crashes: 0), .chosen)
    for hour in 2...30 {
      for device in 0..<2 {
        count.note("device-1", .chosen)
        count.take(Self.report(device, end(hour), crashes: 0), .chosen)
      }
      count.take(Self.report(2, end(hour), crashes: 0), .others)
    }
    count.end(before: .max / 2)
    #expect(count.json["chosen"]?["crashed"] == 1 && count.json["others"]?["crashed"] == 0)
    #expect(count.reason.hasPrefix("reports of lag: 1 of 2 chosen devices sent one"), "\(count.reason)")
    #expect(count.verdict == .notWorse && count.json["hours"] == 32)
  }

  @Test("devices that crash each hour count once: without that an unlucky device would end a rollout")
  func loops() {
    var count = GuardCount(Self.rule)
    for hour in 1...200 {
      for device in 0..<20 {
        let crashes = device == 0 ? 5 : 0
        count.take(
          Self.report(device, Self.start + Int64(hour) * Self.hour, crashes: crashes), device < 2 ? .chosen : .others)
      }
    }
    count.end(before: .max)
    #expect(count.verdict == .notWorse, "\(count.reason)")
  }

  @Test("too few hours, and no other device, are no verdict") func data() throws {
    var count = GuardCount(Self.rule)
    func take(_ hours: ClosedRange<Int>, _ device: Int, _ arm: GuardCount.Arm) {
      for hour in hours { count.take(Self.report(device, Self.start + Int64(hour) * Self.hour, crashes: 0), arm) }
      count.end(before: .max / 2)
    }
    take(1...23, 1, .chosen)
    #expect(count.verdict == .notEnoughData)
    take(24...24, 1, .chosen)
    #expect(count.verdict == .notEnoughData, "there is nothing to compare with")
    var other = GuardCount(Self.rule)
    for hour in 1...24 {
      for device in 0..<2 {
        other.take(
          Self.report(device, Self.start + Int64(hour) * Self.hour, crashes: 0), device == 0 ? .chosen : .others)
      }
    }
    other.end(before: .max / 2)
    #expect(other.verdict == .notWorse)
  }

  @Test(
    "the evidence is the mean likelihood ratio: of a crash of the chosen ones it grows, of one of the others it falls")
  func evidence() {
    var test = RateTest(tolerated: 1)
    #expect(test.evidence == 1)
    test.take(chosen: .init(exposure: 0, events: 3), others: .init(exposure: 10, events: 0))
    #expect(test.evidence == 1, "without time there is nothing to compare")
    test.take(chosen: .init(exposure: 10, events: 1), others: .init(exposure: 10, events: 0))
    let grown = test.evidence
    #expect(grown > 1.5 && grown < 2, "each ratio makes the crash at most twice as likely")
    test.take(chosen: .init(exposure: 10, events: 0), others: .init(exposure: 10, events: 1))
    #expect(test.evidence < grown)
    for _ in 0..<20 { test.take(chosen: .init(exposure: 10, events: 1), others: .init(exposure: 10, events: 0)) }
    #expect(test.isWorse)
  }

  @Test(
    "the ratio of two rates has the exact interval",
    arguments: [
      // The example of R's poisson.test, and one by sums of binomial terms.
      (11, 800.0, 21, 3011.0, 1.971488, 0.858426, 4.277266), (5, 1.0, 5, 1.0, 1.0, 0.230142, 4.345135),
    ]) func interval(a: Int, t: Double, b: Int, u: Double, ratio: Double, low: Double, high: Double) throws
  {
    let found = try #require(RateRatio(.init(exposure: t, events: a), to: .init(exposure: u, events: b)))
    #expect(
      abs((found.ratio ?? 0) - ratio) < 1e-5 && abs(found.low - low) < 1e-5 && abs((found.high ?? 0) - high) < 1e-5)
  }

  @Test("without an event of one there is no upper or no lower end") func ends() throws {
    let better = try #require(RateRatio(.init(exposure: 10, events: 0), to: .init(exposure: 10, events: 4)))
    #expect(better.ratio == 0 && better.low == 0 && better.high! < 1.6)
    let worse = try #require(RateRatio(.init(exposure: 10, events: 4), to: .init(exposure: 10, events: 0)))
    #expect(worse.ratio == nil && worse.high == nil && worse.low > 0.6)
    #expect(RateRatio(.init(exposure: 10, events: 0), to: .init(exposure: 10, events: 0)) == nil)
  }

  @Test(
    "a guard names the member that is wrong",
    arguments: [
      (#"[]"#, "guard: must"), (#"{"rate":"x"}"#, "guard.rate"), (#"{"worse":-1}"#, "guard.worse"),
      (#"{"hours":0}"#, "guard.hours"), (#"{"app":""}"#, "guard.app"), (#"{"x":1}"#, "guard.x"),
      (#"{"action":"stop"}"#, "guard.action"),
      (#"{"rate":"reports"}"#, "guard.type"), (#"{"type":"lag"}"#, "guard.type"),
      (#"{"rate":"reports","type":"a b"}"#, "guard.type"), (#"{"rate":"reports","type":"appHealth"}"#, "guard.type"),
      (#"{"rate":"reports","type":"lag","app":"pos"}"#, "guard.app"),
    ]) func rules(text: String, message: String) throws
  {
    let json = try JSONValue(parsing: text)
    let error = #expect(throws: CollectorRefusal.self) { try RolloutGuard(json) }
    #expect(error?.message.contains(message) == true)
  }
}
