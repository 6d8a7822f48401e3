import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// Rig 4. `PRISM_SEED=…` draws the same misbehaviours again, `PRISM_CHAOS_REPORTS=…` makes the run longer.
@Suite("A misbehaving collector", .timeLimit(.minutes(30)))
struct MisbehavingCollectorTests {
  private static let plain = ["a", "b", "c", "d"], names = plain + ["tls"]
  private static let reportsPerNamespace = Seed.number("PRISM_CHAOS_REPORTS") ?? 600

  @Test("one answer in three is wrong, and the daemon restarts: nothing is lost, nothing is applied twice")
  func oneInThree() async throws {
    let seed = Seed.next("MisbehavingCollectorTests")
    try await withChaosRig(timeout: .seconds(1)) { rig in
      let chaos = try ChaosCollector(
        folder: rig.folder, keys: ["main": DeliveryRig.key], choice: Misbehaviour.all, seed: seed)
      let front = try await TLSFront(folder: rig.folder) { await chaos.take($0) }
      let fates = Mutex(SeededRandom(seed: seed))
      let isHonest = Mutex(false)
      let tls = WireServer { wire in
        let wrong = fates.withLock { Int.random(in: 0..<3, using: &$0) == 0 ? TLSMisbehaviour.random(using: &$0) : nil }
        front.serve(wire, isHonest.withLock { $0 } ? nil : wrong)
      }
      let server = WireServer { chaos.serve($0) }
      var urls = Dictionary(uniqueKeysWithValues: Self.plain.map { ($0, server.url) })
      urls["tls"] = "https://127.0.0.1:\(tls.port)"
      try await Self.feed(rig, ChaosRig.snapshot(urls, caFile: front.authority), seed)
      do {
        try await waitUntil("all but what was rejected is delivered") {
          try await rig.isSettled(Self.names)
        }
      } catch { throw Failed("\(error); \(try await rig.diagnosis)") }
      chaos.becomeHonest()
      isHonest.withLock { $0 = true }
      try await Self.check(rig, chaos)
      tls.stop()
      server.stop()
      await front.stop()
    }
  }

  /// In ten waves, with a stop and a start after every third.
  private static func feed(_ rig: ChaosRig, _ snapshot: Snapshot, _ seed: UInt64) async throws {
    try await rig.start(snapshot)
    let perWave = reportsPerNamespace / 10
    for wave in 0..<10 {
      let numbers = wave * perWave..<(wave + 1) * perWave
      for name in names {
        try await rig.delivery.report(numbers.filter { $0 % 3 != 0 }, in: name, to: rig.engine)
        let payload = Array("payload of \(name) \(wave)".utf8)
        try await rig.delivery.report(
          numbers.filter { $0 % 3 == 0 }, of: "scan", in: name, payload: payload, to: rig.engine)
      }
      if wave % 3 == 2 {
        try await rig.stopEngine()
        try await rig.start(snapshot)
      }
    }
  }

  private static func check(_ rig: ChaosRig, _ chaos: ChaosCollector) async throws {
    let requeued = try await rig.engine.parts.store.requeue(.all(nil))
    _ = try await rig.engine.flush(nil)
    try await waitUntil("dead letters are delivered too") { try await rig.isSettled(names) }
    #expect(chaos.violations == [])
    for name in names {
      for kind in RowKind.reports {
        let (numbers, brokenChains) = try await chaos.applied(name, kind)
        let all = (0..<reportsPerNamespace / 10 * 10).filter { kind == .meta || $0 % 3 == 0 }
        #expect(numbers.sorted() == all, "\(name) \(kind)")
        #expect(brokenChains == 0)
        let ledger = try await rig.ledger(name, kind)
        #expect(ledger.isBalanced && ledger[.delivered] == ledger.stored, "\(name) \(kind)")
      }
    }
    print("\(chaos.posts) posts, \(chaos.drawn.count) misbehaviours, \(requeued) dead letters sent again")
    #expect(chaos.drawn.count >= 30)
  }

  @Test(
    "one bad report in a hundred is found in at most 15 requests, and the other 99 are delivered",
    arguments: [
      0, 1, 42, 63, 98, 99,
    ])
  func oneBadReport(bad: Int) async throws {
    try await withChaosRig { rig in
      let chaos = try ChaosCollector(
        folder: rig.folder, keys: ["main": DeliveryRig.key], choice: [], seed: 0, isBad: { $0 == bad })
      let server = WireServer { chaos.serve($0) }
      try await rig.start(ChaosRig.snapshot(["a": server.url]) { $0.maxItem = 100 })
      try await rig.delivery.report(0..<100, in: "a", to: rig.engine)
      try await waitUntil("all is delivered or dead") { try await rig.isSettled(["a"]) }
      #expect(chaos.posts <= 15)
      #expect(try await chaos.applied("a", .meta).numbers == (0..<100).filter { $0 != bad })
      #expect(try await rig.ledger("a", .meta)[.dead] == 1)
      let letters = try await rig.engine.parts.store.deadLetters(of: nil, after: 0, limit: 10)
      #expect(letters.map(\.cause.status) == [422] && letters.map(\.cause.message) == ["not this one"])
      server.stop()
    }
  }

  @Test("a hundred namespaces whose collectors hang change nothing for one whose collector is well") func isolation()
    async throws
  {
    try await withChaosRig { rig in
      let chaos = try ChaosCollector(folder: rig.folder, keys: ["main": DeliveryRig.key], choice: [], seed: 0)
      let server = WireServer { chaos.serve($0) }
      let hung = Mutex(0)
      let black = WireServer { wire in
        guard wire.readHead() != nil else { return }
        hung.withLock { $0 += 1 }
        wire.stall()
      }
      let dead = (0..<100).map { "hung\($0)" }
      var urls = Dictionary(uniqueKeysWithValues: dead.map { ($0, black.url) })
      urls["well"] = server.url
      try await rig.start(ChaosRig.snapshot(urls))
      for name in dead { try await rig.delivery.report(0..<1, in: name, to: rig.engine) }
      try await waitUntil("a hundred POSTs hang") { hung.withLock { $0 } >= 100 }
      for round in 0..<5 {
        try await rig.delivery.report(round * 100..<(round + 1) * 100, in: "well", to: rig.engine)
        try await waitUntil("round \(round) is delivered") { try await rig.isSettled(["well"]) }
      }
      #expect(try await chaos.applied("well", .meta).numbers == Array(0..<500))
      for name in dead { #expect(try await rig.ledger(name, .meta)[.claimed] == 1) }
      black.stop()
      server.stop()
    }
  }
}
