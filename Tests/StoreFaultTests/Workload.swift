import PrismProtocol
import PrismStore
import PrismTestSupport

/// The life of a store in a fault run: reports come, packets leave, the log is copied into the file.
struct Workload {
  /// Reports that were answered as stored, as a set of numbers.
  private(set) var acknowledged: Set<Int> = []
  /// Reports whose delivery was begun to be settled: they may be gone.
  private(set) var leaving: Set<Int> = []
  /// The packet that was handed out, and that was not begun to be settled.
  private(set) var frozen: PacketID?
  private var next = 0
  /// Takes its turn after each operation; nil: the store is alone with its file.
  var company: SecondConnections?
  private let onProgress: (Workload) -> Void

  /// - Parameter onProgress: called whenever something was acknowledged or handed out, and before something may leave.
  init(onProgress: @escaping (Workload) -> Void = { _ in }) { self.onProgress = onProgress }

  mutating func run(_ store: ReportStore, rounds: Int) async {
    for round in 0..<rounds {
      await append(store, count: 1 + round * 7 % 20)
      if round % 3 == 2 { await deliver(store) }
      // Errors are what is tested here: what was not acknowledged is not expected.
      if round % 5 == 4 { _ = try? await store.maintain() }
      company?.takeTurn()
    }
  }

  /// true: it was acknowledged.
  @discardableResult
  mutating func append(_ store: ReportStore, count: Int) async -> Bool {
    let numbers = next..<(next + count)
    next += count
    guard case .committed = await store.append([Reports.batch(numbers)]) else { return false }
    acknowledged.formUnion(numbers)
    onProgress(self)
    return true
  }

  private mutating func deliver(_ store: ReportStore) async {
    guard let packet = try? await store.turn(UploadCommit(claims: [Reports.claim(15)])).first ?? nil else { return }
    frozen = packet.id
    onProgress(self)
    await append(store, count: 3)
    let metas = packet.rowTexts
    frozen = nil
    leaving.formUnion(metas.compactMap { Reports.number(in: $0) })
    onProgress(self)
    let disposition = Disposition.delivered(packet.id, receipt: Reports.receipt)
    _ = try? await store.turn(UploadCommit(dispositions: [disposition]))
  }
}
