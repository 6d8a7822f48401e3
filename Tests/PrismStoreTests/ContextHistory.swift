import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

/// Random things done to a store by sessions that come and go.
final class ContextHistory {
  private static let namespaces = ["shop", "prism"].map { NamespaceName($0)! }

  private let rig = Rig()
  private var store: ReportStore?
  private var random: SeededRandom
  /// Sessions that live, with their user.
  private var sessions: [(context: CommonContext, user: UInt32)] = []
  private var inFlight: [PacketID] = []
  private var next = 0

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  func open() async throws {
    // So small that nearly each maintenance sweeps.
    store = try await rig.open { $0.contextsBeforeSweep = 4 }
    await (try opened).markReady()?.value
  }

  private var opened: ReportStore { get throws { try #require(store) } }
  private func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

  /// - Returns: what was done.
  func step() async throws -> String {
    switch draw(1...100) {
    case ...40: return try await append()
    case ...52: return end()
    case ...64: return try await claim()
    case ...78: return try await settle()
    case ...82:
      _ = try await (try opened).requeue(.all(nil))
      return "requeue"
    case ...85:
      _ = try await (try opened).remove(.oldest(draw(1...60)), of: random.pick(Self.namespaces))
      return "remove"
    case ...95: return try await maintain()
    default: return try await reopen(isKill: draw(0...1) == 0)
    }
  }

  private func append() async throws -> String {
    if sessions.isEmpty || draw(1...100) <= 50 {
      let members = Array(#""APP_NAME":"\#(next)""#.utf8)
      sessions.append((CommonContext(members: members), UInt32(1000 + draw(0...2))))
    }
    let session = random.pick(sessions)
    // Few rows carry what is common themselves.
    let numbers = next..<next + draw(1...25)
    next = numbers.upperBound
    let quota = StoreQuota(bytesMax: draw(1...4) == 1 ? draw(5000...40_000) : 1 << 30, evictsOldest: true)
    let batch = rig.batch(
      numbers, in: random.pick(Self.namespaces), priority: random.pick(Priority.leaving),
      payload: draw(0...2) == 0 ? [1, 2, 3] : nil, quota: quota, context: session.context, from: session.user)
    guard case .committed = await (try opened).append([batch]) else { throw ModelFailure("not taken") }
    return "append"
  }

  private func end() -> String {
    if !sessions.isEmpty { sessions.remove(at: draw(0...sessions.count - 1)) }
    return "a session ends"
  }

  private func claim() async throws -> String {
    let claim = rig.claim(random.pick(Self.namespaces), random.pick(RowKind.reports), items: draw(1...60))
    if let packet = try await (try opened).claim(claim) { inFlight.append(packet.id) }
    return "claim"
  }

  private func settle() async throws -> String {
    guard !inFlight.isEmpty else { return "nothing to settle" }
    let id = inFlight.remove(at: draw(0...inFlight.count - 1))
    let (first, second) = (rig.packetID(), rig.packetID())
    let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 5, attempts: 2)
    let disposition: Disposition =
      switch draw(1...10) {
      case ...5: .delivered(id, receipt: rig.receipt)
      case ...7: .released(id)
      case ...9: .dead(id, cause: cause)
      default: .split(id, first: first, second: second)
      }
    try await (try opened).settle(disposition)
    // A packet of one row is not split.
    if case .split = disposition { inFlight += try await (try opened).read(id) == nil ? [first, second] : [id] }
    return "settle \(disposition)"
  }

  private func maintain() async throws -> String {
    // Not to the end: others come between the slices of a sweep.
    for _ in 0..<draw(1...12) { if try await !(try opened).maintain() { break } }
    return "maintain"
  }

  private func reopen(isKill: Bool) async throws -> String {
    if isKill { rig.keepAsKilled() }
    await (try opened).close()
    store = nil
    if isKill { rig.restoreKilled() }
    // A restart ends each connection.
    sessions = []
    try await open()
    return isKill ? "kill" : "restart"
  }

  // MARK: What must hold

  func looseRows() async throws -> Int { try Self.looseRows(rig, Array(1...Self.namespaces.count)) }

  /// Rows of namespaces with these numbers that refer to a context which is not there.
  static func looseRows(_ rig: Rig, _ numbers: [Int]) throws -> Int {
    let connection = try SQLiteConnection(.init(path: rig.path, isReadOnly: true))
    var count = 0
    for table in numbers.flatMap({ ["m\($0)", "p\($0)"] }) {
      guard try connection.firstInt("SELECT count(*) FROM sqlite_schema WHERE name = '\(table)'") == 1 else { continue }
      let sql = "SELECT count(*) FROM \(table) WHERE context > 0 AND context NOT IN (SELECT id FROM contexts)"
      count += Int(try connection.firstInt(sql) ?? 0)
    }
    return count
  }

  /// Each row can be read to the end, and then no context is left behind.
  func expectNoneLeft() async throws {
    sessions = []
    _ = try await (try opened).requeue(.all(nil))
    for id in inFlight { try await (try opened).settle(.released(id)) }
    for namespace in Self.namespaces {
      for kind in RowKind.reports {
        while let packet = try await (try opened).claim(rig.claim(namespace, kind, items: 100)) {
          #expect(packet.numbers.count == packet.itemCount)
          try await (try opened).settle(.delivered(packet.id, receipt: rig.receipt))
        }
      }
    }
    let corrupt = try await (try opened).status().values.reduce(0) { sum, kinds in
      kinds.values.reduce(sum) { $0 + $1.ledger[.corrupt] }
    }
    #expect(corrupt == 0)
    _ = try await reopen(isKill: false)
    for _ in 0..<20 { while try await (try opened).maintain() {} }
    let connection = try SQLiteConnection(.init(path: rig.path, isReadOnly: true))
    #expect(try connection.firstInt("SELECT count(*) FROM contexts") == 0)
    await (try opened).close()
  }
}
