import Foundation
import Glibc
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// `PRISM_E2E_KILLS=200` for the long form, `PRISM_SEED=…` for the same kills again.
@Suite struct KillTests {
  static let numbersPerWriter = 10_000_000
  private static let writers = 16
  private static let kills = Seed.number("PRISM_E2E_KILLS") ?? 10

  /// A kind each: metas only, payloads too, a quota that drops the oldest, a quota that refuses; with windows of 8, 64, 1
  /// and 16 packets.
  private static let namespaces = [
    "live": "{url: URL, periodicTimerSecond: 1, maxItem: 50, window: 8, monitorList: [{type: sample}]}",
    "loaded":
      "{url: URL, periodicTimerSecond: 1, maxItem: 20, window: 64, monitorList: [{type: sample, isUploadPayload: true}]}",
    "evicting": "{url: URL, periodicTimerSecond: 3, maxStoreMByte: 1, window: 1, monitorList: [{type: sample}]}",
    "refusing": "{url: URL, maxStoreMByte: 1, onFull: refuse, maxItem: 20, monitorList: [{type: sample}]}",
  ]
  private static let names = namespaces.keys.sorted()

  @Test("after kills at random points a report that was answered `stored` arrives once, in order, or is accounted for")
  func exactlyOnce() async throws {
    let seed = Seed.next("KillTests, \(Self.kills) kills")
    try await withHarness(namespaces: Self.namespaces) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let oracle = Oracle()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<Self.writers { group.addTask { try await Self.send(harness, writer, oracle) } }
        group.addTask { try await Self.killAtRandom(harness, oracle, seed) }
        group.addTask { try await Self.readBeside(harness, oracle) }
        try await group.waitForAll()
      }
      try await harness.waitUntilSent(Self.names)
      try await Self.check(harness, oracle)
    }
  }

  /// Half the writers give ids, and send again what they have no answer to; the others go on with the next.
  private static func send(_ harness: Harness, _ writer: Int, _ oracle: Oracle) async throws {
    let client = harness.client()
    let (name, givesIDs) = (names[writer % names.count], writer < writers / 2)
    var next = writer * numbersPerWriter
    while !oracle.isOver {
      let numbers = next..<next + 50
      let reports = numbers.map { Sample.report($0, in: name, hasPayload: name == "loaded", hasID: givesIDs) }
      do throws(ClientError) {
        oracle.note(try await client.report(contentsOf: reports), in: name, numbers: givesIDs ? nil : numbers)
        next += 50
      } catch .connectionLost, .unreachable {
        if !givesIDs { next += 50 }
        while !oracle.isOver, access(harness.ingest, F_OK) != 0 { try await Task.sleep(for: .milliseconds(10)) }
      } catch { throw error }
    }
  }

  /// A kill never makes another program's reads go wrong, and never makes the daemon set a sound database aside.
  private static func readBeside(_ harness: Harness, _ oracle: Oracle) async throws {
    var reader = ForeignReader(harness.folder + "/state/prism.db")
    try await reader.watch { oracle.isOver }
    #expect(reader.faults == [] && reader.checks > 0)
    #expect(!harness.daemonLog.contains("is set aside"))
  }

  /// The daemon, and about as often the collector.
  private static func killAtRandom(_ harness: Harness, _ oracle: Oracle, _ seed: UInt64) async throws {
    defer { oracle.end() }
    var random = SeededRandom(seed: seed)
    var daemonKills = 0
    while daemonKills < kills {
      let goal = oracle.storedCount + Int.random(in: 1...4000, using: &random)
      do { try await waitUntil("reports are stored") { oracle.storedCount >= goal } } catch {
        throw Failed("\(error); refused: \(oracle.refusals); \(await harness.diagnosis)")
      }
      if Int.random(in: 0..<3, using: &random) > 0 {
        daemonKills += 1
        try await harness.endDaemon(SIGKILL)
        try await harness.startDaemon()
      } else {
        try await harness.endCollector(SIGKILL)
        try await harness.startCollector()
      }
    }
  }

  private static func check(_ harness: Harness, _ oracle: Oracle) async throws {
    let status = try await harness.status()
    Harness.expectIdentity(status)
    for name in names {
      for kind in name == "loaded" ? ["meta", "payload"] : ["meta"] {
        try await harness.expect(oracle[name], name, kind, status)
      }
    }
    #expect(try await harness.query("SELECT count(*) FROM report WHERE chain_broken") == [["0"]])
    #expect(oracle.storedCount > 0)
    let evicted = Harness.rows(status, "evicting", "meta", "evicted")
    print("KillTests: \(oracle.storedCount) answered `stored`, \(evicted) evicted, refused \(oracle.refusals)")
  }
}
