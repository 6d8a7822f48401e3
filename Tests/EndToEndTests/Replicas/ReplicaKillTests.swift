import Foundation
import Glibc
import PrismClient
import PrismOutputs
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// `PRISM_E2E_REPLICA_KILLS=200` for the long form.
@Suite struct ReplicaKillTests {
  private static let kills = Seed.number("PRISM_E2E_REPLICA_KILLS") ?? 6
  private static let daemons = kills > 20 ? 8 : 3
  private static let namespace = ["live": "{url: URL, periodicTimerSecond: 1, monitorList: [{type: sample}]}"]

  @Test(
    "replicas and their database are killed at random, a standby is promoted: what was answered is there once, in order",
    .timeLimit(.minutes(30)))
  func exactlyOnce() async throws {
    let seed = Seed.next("ReplicaKillTests, \(Self.kills) kills")
    try await Self.whileSending { try await Self.killAtRandom($0, seed) }
  }

  @Test("a replica that hangs delays no stream, and each report with an answer is there once", .timeLimit(.minutes(10)))
  func hangs() async throws {
    try await Self.whileSending { fleet in
      defer { for index in 0..<3 { fleet.signal(index, SIGCONT) } }
      try await Self.everyStreamGrows(fleet)
      for victim in 0..<3 {
        fleet.signal(victim, SIGSTOP)
        // Twice: the first rows may have been on their way.
        for _ in 0..<2 { try await Self.everyStreamGrows(fleet) }
        fleet.signal(victim, SIGCONT)
      }
    }
  }

  /// Daemons send to three replicas until `act` is over, and then all that was answered is there once, in order.
  private static func whileSending(_ act: @escaping @Sendable (ReplicaFleet) async throws -> Void) async throws {
    let first = try await Harness(namespaces: [:])
    let fleet = try await ReplicaFleet(count: 3, key: "\(first.folder)/main.key")
    var harnesses: [Harness] = []
    for index in 0..<daemons { harnesses.append(try await daemon(index, fleet, first)) }
    let oracles = harnesses.map { _ in Oracle() }
    do {
      let pairs = Array(zip(harnesses, oracles))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (harness, oracle) in pairs { group.addTask { try await send(harness, oracle) } }
        group.addTask {
          defer { for oracle in oracles { oracle.end() } }
          try await act(fleet)
        }
        try await group.waitForAll()
      }
      for (index, (harness, oracle)) in pairs.enumerated() {
        try await harness.waitUntilSent(["live"])
        try await check(fleet, "d\(index)", oracle)
      }
      let all = try await ReportTable.reports(of: fleet.database.uri())
      #expect(all.count { $0.chainIsBroken } == 0)
      #expect(try await fleet.deadlocks() == 0)
    } catch { Issue.record("\(error)\n\(fleet.lastWords)") }
    for harness in harnesses + [first] { await harness.stop() }
    await fleet.stop()
  }

  /// Waits until each device has a packet more, and prints how long all took.
  private static func everyStreamGrows(_ fleet: ReplicaFleet) async throws {
    func packets() async throws -> [String: Int] {
      let rows = try await fleet.database.sql("SELECT device, packets FROM streams WHERE namespace = 'live'")
      return Dictionary(uniqueKeysWithValues: rows.map { ($0[0], Int($0[1]) ?? 0) })
    }
    let (before, clock) = (try await packets(), ContinuousClock())
    let began = clock.now
    try await waitUntil("each stream has a packet more, though a replica hangs") {
      let now = try await packets()
      return (0..<daemons).allSatisfy { now["d\($0)", default: 0] > before["d\($0)", default: 0] }
    }
    print("all streams grew within \(clock.now - began)")
  }

  private static func daemon(_ index: Int, _ fleet: ReplicaFleet, _ first: Harness) async throws -> Harness {
    let harness = try await Harness(
      namespaces: namespace, extra: "device: {id: d\(index)}", collectorAddress: fleet.address)
    try FileManager.default.removeItem(atPath: "\(harness.folder)/main.key")
    try FileManager.default.copyItem(atPath: "\(first.folder)/main.key", toPath: "\(harness.folder)/main.key")
    try await harness.startDaemon()
    return harness
  }

  private static func send(_ harness: Harness, _ oracle: Oracle) async throws {
    let client = harness.client()
    var next = 0
    while !oracle.isOver {
      let numbers = next..<next + 20
      oracle.note(
        try await client.report(
          contentsOf: numbers.map { Sample.report($0, in: "live", hasPayload: false, hasID: false) }),
        in: "live", numbers: numbers)
      next += 20
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private static func killAtRandom(_ fleet: ReplicaFleet, _ seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let failOver = Int.random(in: kills / 3..<kills, using: &random)
    for number in 0..<kills {
      let before = try await stored(fleet)
      let goal = before + Int.random(in: 1...300, using: &random)
      try await waitUntil("reports are stored") { try await stored(fleet) >= goal }
      let victim = Int.random(in: 0...3, using: &random)
      if number == failOver {
        #expect(try await fleet.deadlocks() == 0)
        try await fleet.failOver()
      } else if victim == 3 {
        #expect(try await fleet.deadlocks() == 0)
        await fleet.database.signal(SIGKILL)
        try await fleet.database.start()
      } else {
        try await fleet.end(victim, random.oneIn(4) ? SIGTERM : SIGKILL)
        try await fleet.start(victim)
      }
    }
  }

  private static func stored(_ fleet: ReplicaFleet) async throws -> Int {
    try await fleet.database.sql("SELECT sum(rows) FROM blocks").first?.first.flatMap { Int($0) } ?? 0
  }

  private static func check(_ fleet: ReplicaFleet, _ device: String, _ oracle: Oracle) async throws {
    let rows = try await ReportTable.reports(of: fleet.database.uri(), device: device).filter { $0.namespace == "live" }
    let ids = rows.map(\.reportID)
    #expect(Set(ids).count == ids.count, "\(device): no report is there twice")
    #expect(oracle["live"].stored.subtracting(ids).isEmpty, "\(device): what was answered is there")
    let numbers = rows.compactMap { (try? JSONValue(parsing: $0.meta))?["n"]?.int }
    #expect(numbers == numbers.sorted() && numbers.count == ids.count, "\(device): in order")
    #expect(ids.count > 0)
  }
}
