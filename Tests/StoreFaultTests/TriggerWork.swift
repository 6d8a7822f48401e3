import PrismProtocol
import PrismStore
import PrismTestSupport

/// A ring that wraps and two triggers of a fault run, in a namespace of its own: kept reports are let go, claimed and delivered.
/// For the second one the collector is asked, which allows or declines.
struct TriggerWork {
  private static let namespace = NamespaceName("armed")!
  private static let ringBytes = 60_000
  private static let quota = StoreQuota(
    bytesMax: 1 << 40, evictsOldest: false, ringBytesMax: ringBytes, memoryBytesMax: ringBytes)
  private static let rule: ReportTrigger = {
    var rule = ReportTrigger(name: "crash", on: .appCrash)
    (rule.before, rule.everySeconds) = (7, 0)
    return rule
  }()
  private static let sampled: ReportTrigger = {
    var rule = ReportTrigger(name: "sampled", on: .appCrash)
    (rule.before, rule.everySeconds, rule.devicesMax) = (5, 0, 3)
    return rule
  }()

  private static let firstCrash = 3_000_000
  private var (nextLine, nextCrash) = (2_000_000, firstCrash)
  /// Answered as stored, and not let go, the newest last.
  private var kept: [Int] = []
  /// Those that must leave: crashes, and lines that the answer of a crash let go.
  private var gone: Set<Int> = []
  /// Those whose delivery was begun to be settled, and those where that was answered.
  private var leaving: Set<Int> = [], left: Set<Int> = []
  /// Those that wait for the collector's answer, and those that may leave: an answer or a crash is being written.
  private var asked: [Int] = [], allowed: Set<Int> = []
  /// An answer is being written.
  private var isDeciding = false
  /// Each outcome is known, but of the step that goes on.
  private var isExact = true

  /// Two of three batches of lines are kept in memory.
  let usesMemory: Bool

  init(usesMemory: Bool = false) { self.usesMemory = usesMemory }

  static func policies(memoryFolder: String) -> [NamespaceName: RetentionPolicy] {
    let policy = RetentionPolicy(
      expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20, memoryFolder: memoryFolder)
    return [namespace: policy]
  }

  mutating func step(_ store: ReportStore, round: Int, _ onProgress: (Self) -> Void) async {
    let lines = nextLine..<nextLine + 1 + round * 5 % 20
    nextLine = lines.upperBound
    var batch = Reports.batch(lines, in: Self.namespace, quota: Self.quota, priority: .kept)
    let isInMemory = usesMemory && round % 3 > 0
    batch.types = batch.types.map { .init(type: $0.type, priority: .kept, isRealtime: false, isInMemory: isInMemory) }
    if await Self.append(batch, store) {
      kept += lines
    } else {
      isExact = false
    }
    if round % 3 == 1 {
      var crash = Reports.batch(nextCrash..<nextCrash + 1, in: Self.namespace, quota: Self.quota, priority: .crash)
      crash.types = [.init(type: .appCrash, priority: .crash, isRealtime: false)]
      allowed.formUnion(kept.suffix(Self.rule.before))
      onProgress(self)
      if await Self.append(crash, store) {
        gone.formUnion(kept.suffix(Self.rule.before) + [nextCrash])
        kept.removeLast(min(kept.count, Self.rule.before))
        asked += kept.suffix(Self.sampled.before)
        kept.removeLast(min(kept.count, Self.sampled.before))
      } else {
        isExact = false
      }
      nextCrash += 1
    }
    onProgress(self)
    if round % 4 == 2 { await decide(store, leaves: round % 8 == 2, onProgress) }
    if round % 4 == 3 { await deliver(store, onProgress) }
  }

  private static func append(_ batch: ReportBatch, _ store: ReportStore) async -> Bool {
    let outcome = await store.append([batch], rules: [namespace: ReportRules(triggers: [rule, sampled])])
    if case .committed(let outcomes) = outcome { return outcomes.allSatisfy { $0.exceptions.isEmpty } }
    return false
  }

  /// The collector answers.
  private mutating func decide(_ store: ReportStore, leaves: Bool, _ onProgress: (Self) -> Void) async {
    guard let intent = try? await store.intents(of: Self.namespace).first else { return }
    if leaves { allowed.formUnion(asked) }
    isDeciding = true
    onProgress(self)
    do {
      try await store.decide(intent, of: Self.namespace, leaves: leaves, ringBytesMax: Self.ringBytes)
      if leaves { gone.formUnion(asked) } else { kept = (kept + asked).sorted() }
      asked = []
    } catch { isExact = false }
    isDeciding = false
    onProgress(self)
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
  /// - Parameter mayDiffer: steps went on after one whose outcome is not known.
  func loss(in store: ReportStore, isSalvaged: Bool, mayDiffer: Bool = false) async throws -> String? {
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
    let rows = try await store.export(Self.namespace, .meta, after: 0, limit: 100_000)
    let there = Set(rows.compactMap { Reports.number(in: Substring(decoding: $0.meta, as: UTF8.self)) })
    if isExact, !isSalvaged {
      let early = numbers.filter { $0 < Self.firstCrash }.subtracting(allowed)
      if !early.isEmpty { return "\(early.count) leave that are asked about, or that were declined" }
      if !isDeciding, !there.isSuperset(of: asked) { return "some that are asked about are not there" }
    }
    if mayDiffer, !isExact { missing.subtract(there) }
    if isSalvaged {
      missing.subtract(there)
    } else if !left.isDisjoint(with: numbers) {
      return "\(left.intersection(numbers).count) that were delivered leave again"
    }
    return missing.isEmpty ? nil : "\(missing.count) that were let go do not leave"
  }
}
