import PrismProtocol
import PrismStore

/// Kept reports of a fault run, in the same database as the others. The ring is so small that it wraps.
struct RingWork {
  /// Their numbers begin here.
  private static let first = 1_000_000
  private static let quota = StoreQuota(bytesMax: 1 << 40, evictsOldest: false, ringBytesMax: 60_000)

  private var next = first
  private var acknowledged: Set<Int> = []

  mutating func step(_ store: ReportStore, round: Int) async {
    let numbers = next..<next + 1 + round * 5 % 20
    next = numbers.upperBound
    let batch = Reports.batch(numbers, quota: Self.quota, priority: .kept)
    if case .committed = await store.append([batch]) { acknowledged.formUnion(numbers) }
  }

  /// The fault of the ring; nil: nothing. - Parameter isSalvaged: pages of rows that were overwritten may have been read.
  func loss(in store: ReportStore, isSalvaged: Bool) async throws -> String? {
    let rows = try await store.export(Reports.namespace, .meta, after: 0, limit: 100_000)
    let numbers = rows.filter { RowID.isKept($0.id) }.map {
      Reports.number(in: Substring(decoding: $0.meta, as: UTF8.self))
    }
    let (kept, ledger) = (numbers.compactMap(\.self), try await store.status()[Reports.namespace]?[.meta]?.ledger)
    guard kept.count == numbers.count, Set(kept).count == kept.count, kept.count == ledger?[.kept] ?? 0 else {
      return "\(kept.count) of \(numbers.count) kept rows are whole, the ledger counts \(ledger?[.kept] ?? 0)"
    }
    let missing = acknowledged.subtracting(kept)
    guard let newest = acknowledged.max() else { return nil }
    if missing.contains(newest) { return "the newest kept report is not there" }
    if isSalvaged { return nil }
    let early = missing.filter { $0 > kept.min() ?? 0 }
    return early.isEmpty ? nil : "\(early.count) were overwritten before older ones"
  }
}
