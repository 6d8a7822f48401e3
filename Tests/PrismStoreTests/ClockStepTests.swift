import PrismBase
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismStore

/// The clock rig of the store: no step of the wall clock, in either direction, changes a figure of the ledger or what is known.
@Suite("Steps of the wall clock")
final class ClockStepTests: Sendable {
  private static let day: Int64 = 86_400_000
  /// From 1970 to now, ten seconds of a clock that is decades ahead, and back by years.
  static let steps: [Int64] = [1_700_000_000_000, 40 * day, 20_000 * day, -40 * day, -1_700_000_000_000]

  private let rig = Rig()
  private let log = Mutex<[String]>([])
  private let cause = Disposition.DeadCause(status: 400, message: "no", unixMilliseconds: 1, attempts: 1)

  private func open(boot: String = "b1", time: ManualTime? = nil) async throws -> ReportStore {
    let store = try await rig.open { options in
      options.bootID = boot
      if let time { options.time = time }
      options.log = Logger(write: { line in self.log.withLock { $0.append(line) } })
    }
    try await store.apply([
      Rig.shop: RetentionPolicy(expirationDays: 1, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20)
    ])
    return store
  }

  private func settle(_ store: ReportStore) async throws { while try await store.maintain() {} }

  @Test("nothing expires and nothing is forgotten: waiting, claimed and dead rows, ids, deliveries", arguments: steps)
  func stepped(step: Int64) async throws {
    if step > 0 { rig.time.stepWallClock(milliseconds: -min(step, 1_699_999_990_000)) }
    var opened: ReportStore? = try await open()
    var store: ReportStore { get throws { try #require(opened) } }
    _ = try await store.append([rig.batch([1], payload: [1], ids: ["sent"])])
    let sent = try #require(try await store.claim(rig.claim()))
    try await store.settle(.delivered(sent.id, receipt: rig.receipt))
    _ = try await store.append([rig.batch([2], ids: ["dead"])])
    let dead = try #require(try await store.claim(rig.claim()))
    try await store.settle(.dead(dead.id, cause: cause))
    _ = try await store.append([rig.batch([3])])
    let claimed = try #require(try await store.claim(rig.claim()))
    _ = try await store.append([rig.batch([4], createdTime: 1), rig.batch([5])])
    let before = try await store.ledger()
    for stepped in [step, -step, step] {
      rig.time.stepWallClock(milliseconds: stepped)
      try await settle(try store)
      try await store.close()
      opened = nil  // the folder is free
      opened = try await open()
      try await settle(try store)
    }
    #expect(try await store.ledger() == before && before[.expired] == 0)
    #expect(try await store.read(claimed.id) != nil)
    guard case .committed(let outcomes) = try await store.append([rig.batch([1, 2], ids: ["sent", "dead"])]) else {
      Issue.record("not committed")
      return
    }
    #expect(outcomes[0].exceptions.map { "\($0.what)" } == ["duplicate", "duplicate"])
    #expect(try await store.trace("sent").contains { if case .delivered = $0.place { true } else { false } })
    #expect(log.withLock { $0.filter { $0.contains("expired") } } == [])
  }

  @Test(
    "a created time of the sender's is no age",
    arguments: [Int64(1), 1_000_000_000_000, 1_700_000_000_000 - 20 * day])
  func createdTime(created: Int64) async throws {
    let store = try await open()
    _ = await store.append([rig.batch(1...3, createdTime: created)])
    rig.time.move(seconds: 86_000)
    try await settle(store)
    #expect(try await store.ledger()[.expired] == 0)
    rig.time.move(seconds: 401)
    try await settle(store)
    #expect(try await store.ledger()[.expired] == 3)
  }

  @Test("the time of each boot counts, the time without power does not; what expired is said with how long it was held")
  func boots() async throws {
    var time = ManualTime(uptime: .zero)
    var opened: ReportStore? = try await open(time: time)
    var store: ReportStore { get throws { try #require(opened) } }
    _ = try await store.append([rig.batch([1])])
    for boot in 2...4 {
      time.move(seconds: 8 * 3600)
      try await settle(try store)
      #expect(try await store.ledger()[.expired] == 0, "boot \(boot)")
      try await store.close()
      opened = nil
      time = ManualTime(uptime: .zero, unixMilliseconds: time.unixMilliseconds + 100 * Self.day)
      opened = try await open(boot: "b\(boot)", time: time)
    }
    time.move(seconds: 60)
    try await settle(try store)
    #expect(try await store.ledger()[.expired] == 1)
    let lines = log.withLock { $0.filter { $0.contains("reports expired") } }
    #expect(lines.count == 1 && lines.first?.contains("namespace=shop rows=1 held_hours=24") == true, "\(lines)")
    #expect(try await store.status()[Rig.shop]?[.meta]?.expiry?.rows == 1)
  }
}
