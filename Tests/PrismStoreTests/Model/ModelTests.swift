import Foundation
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Random operations on the store and on a model of it: after every one both say the same, and the ledger balances.
/// `PRISM_SEED=N` replays a run, `PRISM_SOAK=N` makes it N times as long.
@Suite struct ModelTests {
  private static let operations = 400 * (number("PRISM_SOAK") ?? 1)

  private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }

  @Test("any sequence of operations leaves what the model says", arguments: 0..<3)
  func randomOperations(run: Int) async throws {
    let seed = (Self.number("PRISM_SEED").map { UInt64($0) } ?? UInt64.random(in: 0..<1 << 48)) &+ UInt64(run)
    print("store model: seed \(seed) (replay run 0 with PRISM_SEED=\(seed))")
    let dice = try await ModelRun(seed: seed)
    for step in 0..<Self.operations {
      let what = try await dice.step()
      try await dice.compare("step \(step), \(what)")
    }
    await dice.end()
  }
}

/// One store, its model, and the dice.
final class ModelRun {
  private static let namespaces = ["shop", "prism", "third"].map { NamespaceName($0)! }
  private static let types: [(ReportType, Priority)] = [
    (ReportType("crash")!, .crash), (ReportType("pay")!, .realtime), (ReportType("click")!, .rest),
    (ReportType("net")!, .rest),
  ]

  private static let users: [UInt32] = [0, 1000, 65_534]

  private let rig = Rig()
  private var store: ReportStore?
  private var model = ModelStore()
  private var random: SeededRandom
  private var next = 0

  init(seed: UInt64) async throws {
    random = SeededRandom(seed: seed)
    store = try await Self.open(rig)
  }

  /// With small tables, so that rows are in many and are delivered from all of them.
  private static func open(_ rig: Rig) async throws -> ReportStore {
    try await rig.open { options in
      options.contextsBeforeSweep = 8
      options.segmentBytes = 4096
    }
  }

  func end() async { await store?.close() }

  private var opened: ReportStore { get throws { try #require(store) } }
  private func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
  private func chance(_ percent: Int) -> Bool { draw(1...100) <= percent }
  private func pick<T>(_ values: [T]) -> T { values[draw(0...values.count - 1)] }

  /// - Returns: what was done.
  func step() async throws -> String {
    let namespace = pick(Self.namespaces)
    let kind = pick(RowKind.reports)
    switch draw(1...100) {
    case ...35: return try await append(namespace)
    case ...55: return try await claim(namespace, kind)
    case ...75: return try await settle(namespace, kind)
    case ...79: return try await letters(namespace)
    case ...84: return try await remove(namespace)
    case ...90: return try await age()
    case ...93: return try await newVersion(namespace)
    case ...97: return try await reopen(isKill: true)
    default: return try await reopen(isKill: false)
    }
  }

  // MARK: Operations

  private func append(_ namespace: NamespaceName) async throws -> String {
    let (type, priority) = pick(Self.types)
    let payload = chance(40) ? [UInt8](repeating: 7, count: draw(1...2000)) : nil
    let numbers = next..<next + draw(1...30)
    next = numbers.upperBound
    let ids = chance(30) ? numbers.map { chance(20) ? "c-\(draw(0...next))" : "c-\($0)" } : nil
    // The time that a sender gives is no age.
    let created = rig.time.unixMilliseconds - (chance(10) ? Int64(draw(1...9)) * 86_400_000 : 0)
    let user = pick(Self.users)
    let quota = StoreQuota(
      bytesMax: chance(20) ? draw(1000...60_000) : 1 << 30, userBytesMax: chance(10) ? draw(1000...30_000) : .max,
      evictsOldest: chance(50))
    let batch = rig.batch(
      numbers, of: type, in: namespace, priority: priority, payload: payload, ids: ids,
      quota: quota, createdTime: created, from: user)
    guard case .committed(let outcomes) = await (try opened).append([batch]), let outcome = outcomes.first else {
      throw ModelFailure("not taken")
    }
    let offers = numbers.enumerated().map { index, number in
      ModelStore.Offer(
        number: number, type: type, priority: priority, payloadBytes: payload?.count,
        clientID: ids.map { "\(user)/\($0[index])" }, user: user, metaBytes: 200,
        arrived: rig.time.unixMilliseconds)
    }
    let expected = model.append(
      offers, ids: outcome.ids, to: namespace, quota: quota, appVersion: policies[namespace]?.appVersion)
    var answers = [ModelStore.Answer](repeating: .stored, count: offers.count)
    for (index, exception) in outcome.exceptions {
      if case .duplicate = exception { answers[index] = .duplicate } else { answers[index] = .full }
    }
    #expect(answers == expected, "append to \(namespace)")
    return "append \(numbers.count) of \(user) to \(namespace)"
  }

  private func claim(_ namespace: NamespaceName, _ kind: RowKind) async throws -> String {
    let chosen = TypeSet(Set(Self.types.map(\.0).filter { _ in chance(50) }))
    let filter: Claim.TypeFilter = chance(50) ? .all : chance(50) ? .only(chosen) : .except(chosen)
    let items = draw(1...40)
    let claim = rig.claim(namespace, kind, types: filter, items: items)
    let packet = try await (try opened).claim(claim)
    let rows = model.claim(claim.packetID, namespace, kind, items: items) { type in
      switch filter {
      case .all: true
      case .only(let types): types.contains(type)
      case .except(let types): !types.contains(type)
      }
    }
    #expect(packet?.numbers ?? [] == rows.map(\.number), "claim \(namespace) \(kind)")
    return "claim \(rows.count) of \(namespace) \(kind)"
  }

  private func settle(_ namespace: NamespaceName, _ kind: RowKind) async throws -> String {
    guard let packet = model[namespace, kind].packets.randomElement(using: &random) else { return "nothing to settle" }
    let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 5, attempts: 2)
    let disposition: Disposition =
      switch draw(1...10) {
      case ...5: .delivered(packet.id, receipt: rig.receipt)
      case ...7: .split(packet.id, first: rig.packetID(), second: rig.packetID())
      case ...9: .dead(packet.id, cause: cause)
      default: .released(packet.id)
      }
    let read = try await (try opened).read(packet.id)
    #expect(read?.numbers == packet.rows.map(\.number), "the packet's rows, read again")
    try await (try opened).settle(disposition)
    model.settle(disposition, namespace, kind)
    return "settle \(disposition)"
  }

  private func letters(_ namespace: NamespaceName) async throws -> String {
    let scope = chance(50) ? namespace : nil
    if chance(60) {
      _ = try await (try opened).requeue(.all(scope))
      model.requeue(scope)
      return "requeue"
    }
    _ = try await (try opened).drop(.all(scope))
    model.dropDead(scope)
    return "drop the dead"
  }

  private func remove(_ namespace: NamespaceName) async throws -> String {
    let selection: RemovalSelection =
      switch draw(1...12) {
      case 1: .all
      case ...5: .oldest(draw(1...20))
      case ...8: .latest(draw(1...20))
      case ...10: .report("c-\(draw(0...next))")
      default: .olderThan(days: draw(1...8))
      }
    _ = try await (try opened).remove(selection, of: namespace)
    model.remove(selection, namespace, now: rig.time.unixMilliseconds)
    return "remove \(selection) of \(namespace)"
  }

  private func age() async throws -> String {
    // Rows that come within an hour may be taken for as old as the last of them.
    rig.time.move(days: Int64(draw(0...2)), seconds: Int64(draw(0...3)) * 7200)
    try await maintain()
    return "time passes"
  }

  private func maintain() async throws {
    while try await (try opened).maintain() {}
    model.maintain(expirationDays: expirationDays, now: rig.time.unixMilliseconds)
  }

  private var policies: [NamespaceName: RetentionPolicy] = [:]
  /// Of retired namespaces too.
  private var expirationDays: [NamespaceName: Int] = [:]

  private func apply() async throws {
    try await (try opened).apply(policies)
    expirationDays = model.queues.mapValues { _ in 15 }.merging(policies.mapValues(\.expirationDays)) { $1 }
    for (name, policy) in policies {
      model.apply(appVersion: policy.appVersion ?? "", isUpdateClear: policy.isUpdateClear, name)
    }
  }

  private func newVersion(_ namespace: NamespaceName) async throws -> String {
    let policy = RetentionPolicy(
      expirationDays: 7, isUpdateClear: chance(50), appVersion: "v\(draw(1...3))", maxBodyBytes: 1 << 20)
    policies[namespace] = policy
    try await apply()
    return "version \(policy.appVersion ?? "") in \(namespace)"
  }

  private func reopen(isKill: Bool) async throws -> String {
    if isKill { rig.keepAsKilled() }
    await (try opened).close()
    store = nil
    if isKill { rig.restoreKilled() }
    store = try await Self.open(rig)
    await (try opened).markReady()?.value
    try await apply()
    return isKill ? "kill" : "restart"
  }

  // MARK: Comparing

  func compare(_ what: String) async throws {
    let store = try opened
    let status = try await store.status()
    for namespace in Self.namespaces {
      for kind in RowKind.reports {
        let expected = model[namespace, kind]
        let found = status[namespace]?[kind]
        let ledger = found?.ledger ?? Ledger()
        #expect(ledger.isBalanced && ledger == expected.ledger, "\(what): \(namespace) \(kind)")
        #expect(found?.bytes ?? 0 == expected.bytes, "\(what): bytes of \(namespace) \(kind)")
        let packets = try await store.inFlight(namespace, kind)
        #expect(packets.map(\.id) == expected.packets.map(\.id), "\(what): packets of \(namespace) \(kind)")
        #expect(try await store.lastAccepted(namespace, kind) == expected.lastAccepted, "\(what)")
        guard chance(10) else { continue }
        let rows = try await store.export(namespace, kind, after: 0, limit: 100_000)
        #expect(rows.map(\.id) == expected.stored.map(\.id.value), "\(what): rows of \(namespace) \(kind)")
      }
    }
    let dead = Self.namespaces.reduce(0) { $0 + model[$1, .meta].dead.count + model[$1, .payload].dead.count }
    #expect(try await store.deadLetters(of: nil, after: 0, limit: 100_000).count == dead, "\(what): dead letters")
  }
}

struct ModelFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
