import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Synchronization
import Testing

/// `PRISM_E2E_KILLS=50` for the long form, `PRISM_E2E_SEED=…` for the same run again.
@Suite struct KillTests {
  private static let kills = number("PRISM_E2E_KILLS") ?? 6
  private static let seed = number("PRISM_E2E_SEED") ?? Int.random(in: 0..<1_000_000)
  private static let namespaces = [
    "live": "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample}]\n",
    "loaded": "url: URL\nperiodicTimerSecond: 1\nmonitorList: [{type: sample, isUploadPayload: true}]\n",
  ]

  private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }

  /// What the clients know to be stored.
  private struct Stored {
    var ids: Set<String> = []
    var refusals: [String: Int] = [:]
    var isOver = false
  }

  @Test("whatever is killed at whatever point: each report that was answered `stored` arrives exactly once")
  func exactlyOnce() async throws {
    print("KillTests: \(Self.kills) kills, seed \(Self.seed)")
    try await withHarness(namespaces: Self.namespaces) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let stored = Stock()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for connection in 0..<8 { group.addTask { try await Self.send(harness, connection, stored) } }
        group.addTask { try await Self.killAtRandom(harness, stored) }
        try await group.waitForAll()
      }
      try await harness.waitUntilSent(["live", "loaded"], within: .seconds(300))
      try await Self.expectOnce(harness, stored.ids)
      Harness.expectIdentity(try await harness.status())
    }
  }

  private final class Stock: Sendable {
    private let state = Mutex(Stored())
    var ids: Set<String> { state.withLock { $0.ids } }
    var count: Int { state.withLock { $0.ids.count } }
    /// By code: some are to be expected of a daemon that has just begun.
    var refusals: [String: Int] { state.withLock { $0.refusals } }
    var isOver: Bool { state.withLock { $0.isOver } }
    func end() { state.withLock { $0.isOver = true } }
    func add(_ answers: [ReportAnswer]) {
      state.withLock { state in
        for answer in answers {
          switch answer {
          case .stored(let id, _): state.ids.insert(id)
          case .refused(let refusal): state.refusals[refusal.code.rawValue, default: 0] += 1
          }
        }
      }
    }
  }

  /// Half the connections give ids, and send again what they have no answer to; the others go on with the next.
  private static func send(_ harness: Harness, _ connection: Int, _ stored: Stock) async throws {
    let client = harness.client()
    var next = connection * 10_000_000
    while !stored.isOver {
      let name = connection % 2 == 0 ? "live" : "loaded"
      let reports = (next..<next + 50).map {
        Sample.report($0, in: name, hasPayload: name == "loaded", hasID: connection < 4)
      }
      do throws(ClientError) {
        stored.add(try await client.report(contentsOf: reports))
        next += 50
      } catch .connectionLost, .unreachable {
        if connection >= 4 { next += 50 }
        try await Task.sleep(for: .milliseconds(10))  // until the daemon is there again
      } catch { throw error }
    }
  }

  private static func killAtRandom(_ harness: Harness, _ stored: Stock) async throws {
    defer { stored.end() }
    var random = SeededGenerator(seed: UInt64(seed))
    for _ in 0..<kills {
      let goal = stored.count + Int.random(in: 1...4000, using: &random)
      do { try await waitUntil("reports are stored", within: .seconds(60)) { stored.count >= goal } } catch {
        throw Failed("\(error); refused: \(stored.refusals); \(await harness.diagnosis)")
      }
      if Bool.random(using: &random) {
        try await harness.endDaemon(SIGKILL)
        try await harness.startDaemon()
      } else {
        try await harness.endCollector(SIGKILL)
        try await harness.startCollector()
      }
    }
  }

  private static func expectOnce(_ harness: Harness, _ stored: Set<String>) async throws {
    var metas: Set<String> = []
    for (namespace, kinds) in [("live", ["meta"]), ("loaded", ["meta", "payload"])] {
      var ids: Set<String> = []
      for kind in kinds {
        let rows = try await harness.arrived(namespace, kind)
        let before = ids
        ids = Set(rows.map(\.reportID))
        #expect(ids.count == rows.count, "\(namespace) \(kind): none arrived twice")
        #expect(kind == "meta" || ids == before, "each payload arrived with its meta")
        for row in rows where kind == "payload" {
          if row.payloadHex != Sample.payloadHex(row.number) { Issue.record("\(row.number) is not what was sent") }
        }
      }
      metas.formUnion(ids)
    }
    let lost = stored.subtracting(metas)
    #expect(lost.isEmpty, "\(lost.count) of \(stored.count) stored ones never arrived")
  }
}
