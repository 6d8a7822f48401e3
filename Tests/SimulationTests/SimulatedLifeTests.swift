import Foundation
import PrismEngine
import PrismTestSupport
import Testing

@Suite("Simulated life", .serialized)
struct SimulatedLifeTests {
  /// The result of a life.
  struct Outcome: Sendable {
    let traceHash: UInt64
    let happenings: Int
    let reports: Int
    /// The most packets of one namespace and kind that were on their way at a time.
    let mostInFlight: Int
    let broken: String?
    let tail: String
    let seconds: Double
    let simulated: Duration
  }

  /// Trouble for `span` and a calm in turn.
  static func live(seed: UInt64, hours: Int, trouble span: Duration = .seconds(5 * 3600)) async throws -> Outcome {
    try await Stage.open(seed: seed ^ 0x5EED) { stage in
      let root = "/dev/shm/prism-life-\(UUID().uuidString)"
      mkdir(root, 0o700)
      defer { if getenv("PRISM_KEEP") == nil { try? FileManager.default.removeItem(atPath: root) } }
      let began = Date()
      let life = try Life(stage, seed: seed, root: root)
      let start = life.time.uptime
      var broken: String?
      do {
        while life.time.uptime - start < .seconds(hours * 3600) {
          try life.trouble(for: span)
          try life.calmDown()
        }
      } catch { broken = "\(error)" }
      let simulated = life.time.uptime - start
      life.end()
      return Outcome(
        traceHash: life.trace.hash, happenings: life.trace.count, reports: life.oracle.lastNumber,
        mostInFlight: life.rules.mostInFlight, broken: broken,
        tail: life.trace.tail, seconds: Date().timeIntervalSince(began), simulated: simulated)
    }
  }

  @Test("two days of outages, clock steps, reloads, full quotas and restarts: every promise holds after every step")
  func twoDays() async throws {
    let first = SeededRandom.announcedSeed("simulated life")
    for seed in first..<(first + UInt64(soakFactor)) {
      let life = try await Self.live(seed: seed, hours: 48)
      let speed = Double(life.simulated.components.seconds) / life.seconds
      print(
        "simulated life \(seed): \(life.reports) reports, \(life.happenings) happenings, \(life.mostInFlight) packets at a time in \(life.seconds) s, \(Int(speed)) times real time"
      )
      try #require(life.broken == nil, "seed \(seed): \(life.broken ?? "")\n\(life.tail)")
    }
  }

  @Test("short lives, always the same: every promise holds, and windows open; the mutants count on them")
  func shortLife() async throws {
    var mostInFlight = 0
    for seed: UInt64 in 1...6 {
      let life = try await Self.live(seed: seed, hours: 3, trouble: .seconds(3600))
      try #require(life.broken == nil, "seed \(seed): \(life.broken ?? "")\n\(life.tail)")
      mostInFlight = max(mostInFlight, life.mostInFlight)
    }
    // Of one life it can't be said: now and then a collector takes one packet at a time for all of it.
    #expect(mostInFlight > 1)
  }

  @Test("the same seed is the same life, event by event")
  func replay() async throws {
    let seed = SeededRandom.announcedSeed("simulated life, twice")
    let first = try await Self.live(seed: seed, hours: 6)
    let second = try await Self.live(seed: seed, hours: 6)
    #expect(first.happenings > 100)
    #expect(first.traceHash == second.traceHash)
  }

  @Test("over restarts of the daemon no step of the wall clock begins a metered window", arguments: [-2, 2] as [Int64])
  func meteredWindow(daysStepped: Int64) async throws {
    let used = try await Stage.open(seed: 1) { stage in
      let root = "/dev/shm/prism-life-\(UUID().uuidString)"
      mkdir(root, 0o700)
      defer { try? FileManager.default.removeItem(atPath: root) }
      let life = try Life(stage, seed: 1, root: root)
      defer { life.end() }
      life.set(.metered)
      func send() throws -> Int {
        for _ in 0..<8 { try life.report(count: 20) }
        try life.live(until: life.time.uptime + .seconds(700))
        return life.rules.windows.values.reduce(0) { $0 + $1.usedBytes }
      }
      let milliseconds = daysStepped * 86_400_000
      var used = [try send()]
      life.time.stepWallClock(milliseconds: milliseconds)
      // It throws where the daemon has counted anything else than what left.
      try life.restart(after: .seconds(5))
      life.time.stepWallClock(milliseconds: -2 * milliseconds)
      used.append(try send())
      try life.restart(after: .seconds(5))
      return used
    }
    #expect(used[0] > 0 && used[1] > used[0], "\(used)")
  }
}
