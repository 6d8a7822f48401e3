import PrismProtocol
import PrismStore
import PrismTestSupport

/// A ring that wraps and a trigger of a fault run, in a namespace of its own: kept reports are let go, claimed and delivered.
struct TriggerWork {
  private static let namespace = NamespaceName("armed")!
  private static let quota = StoreQuota(bytesMax: 1 << 40, evictsOldest: false, ringBytesMax: 60_000)
  private static let rule: ReportTrigger = {
    var rule = ReportTrigger(name: "crash", on: .appCrash)
    (rule.before, rule.everySeconds) = (7, 0)
    return rule
  }()

  private var (nextLine, nextCrash) = (2_000_000, 3_000_000)
  /// Answered as stored, and not let go, the newest last.
  private var kept: [Int] = []
  /// Those that must leave: crashes, and lines that the answer of a crash let go.
  private var gone: Set<Int> = []
  /// Those whose delivery was begun to be settled, and those where that was answered.
  private var leaving: Set<Int> = [], left: Set<Int> = []

  mutating func step(_ store: ReportStore, round: Int, _ onProgress: (Self) -> Void) async {
    let lines = nextLine..<nextLine + 1 + round * 5 % 20
    nextLine = lines.upperBound
    if await Self.append(Reports.batch(lines, in: Self.namespace, quota: Self.quota, priority: .kept), store) {
      kept += lines
    }
    if round % 3 == 1 {
      var crash = Reports.batch(nextCrash..<nextCrash + 1, in: Self.namespace, quota: Self.quota, priority: .crash)
      crash.types = [.init(type: .appCrash, priority: .crash, isRealtime: false)]
      if await Self.append(crash, store) {
        gone.formUnion(kept.suffix(Self.rule.before) + [nextCrash])
        kept.removeLast(min(kept.count, Self.rule.before))
      }
      nextCrash += 1
    }
    onProgress(self)
    if round % 4 == 3 { await deliver(store, onProgress) }
  }

  private static func append(_ batch: ReportBatch, _ store: ReportStore) async -> Bool {
    let outcome = await store.append([batch], rules: [namespace: ReportRules(triggers: [rule])])
    if case .committed = outcome { return true }
    return false
  }

  private static func claim(_ itemsMax: Int) -> Claim {
    let other = Reports.claim(itemsMax)
    return Claim(
      namespace: namespace, kind: .meta, types: .all, itemsMax: itemsMax, bytesMax: 1 << 24, metaBytesMax: 1 << 24,
      packetID: other.packetID, unixMilliseconds: other.unixMilliseconds)
  }

  /// One packet is delivered, one waits again, and one stays on its way.
  private mutating func deliver(_ store: ReportStore, _ onProgress: (Self) -> Void) async {
    let claims = [5, 3, 2].map { Self.claim($0) }
    guard let claimed = try? await store.turn(UploadCommit(claims: claims)), let first = claimed[0] else { return }
    let numbers = first.rowTexts.compactMap { Reports.number(in: $0) }
    leaving.formUnion(numbers)
    onProgress(self)
    let released = claimed[1].map { [Disposition.released($0.id)] } ?? []
    let turn = UploadCommit(dispositions: [.delivered(first.id, receipt: Reports.receipt)] + released)
    if (try? await store.turn(turn)) != nil { left.formUnion(numbers) }
    onProgress(self)
  }

  /// The fault of what was let go; nil: nothing. - Parameter isSalvaged: then it may be kept again.
  func loss(in store: ReportStore, isSalvaged: Bool) async throws -> String? {
    var found: [Int?] = []
    for packet in try await store.inFlight(Self.namespace, .meta) {
      found += try await store.read(packet.id)?.rowTexts.map { Reports.number(in: $0) } ?? []
    }
    while let packet = try await store.turn(UploadCommit(claims: [Self.claim(1000)])).first ?? nil {
      found += packet.rowTexts.map { Reports.number(in: $0) }
    }
    let numbers = Set(found.compactMap(\.self))
    if numbers.count != found.count {
      return "\(numbers.count) of \(found.count) rows that leave are whole and there once"
    }
    var missing = gone.subtracting(leaving).subtracting(numbers)
    if isSalvaged {
      let rows = try await store.export(Self.namespace, .meta, after: 0, limit: 100_000)
      missing.subtract(rows.compactMap { Reports.number(in: Substring(decoding: $0.meta, as: UTF8.self)) })
    } else if !left.isDisjoint(with: numbers) {
      return "\(left.intersection(numbers).count) that were delivered leave again"
    }
    return missing.isEmpty ? nil : "\(missing.count) that were let go do not leave"
  }
}
