import PrismProtocol
import PrismStore
import PrismTestSupport

/// The life of a store in a fault run: reports come, packets leave, the log is copied into the file.
struct Workload {
  /// Reports that were answered as stored, as a set of numbers.
  private(set) var acknowledged: Set<Int> = []
  /// Reports whose delivery was begun to be settled: they may be gone.
  private(set) var leaving: Set<Int> = []
  /// Packets that were handed out, and that were not begun to be settled.
  private(set) var frozen: Set<PacketID> = []
  /// The same in their order, with their rows.
  private var window: [ClaimedPacket] = []
  private static let windowMax = 8
  private var next = 0
  /// Records, in the same database.
  private(set) var records = RecordWork()
  /// Kept reports.
  private(set) var ring = RingWork()
  /// Kept reports that a trigger lets go.
  private(set) var triggers = TriggerWork()
  /// Takes its turn after each operation; nil: the store is alone with its file.
  var company: SecondConnections?
  private let onProgress: (Workload) -> Void

  /// - Parameter onProgress: called whenever something was acknowledged or handed out, and before something may leave.
  init(onProgress: @escaping (Workload) -> Void = { _ in }) { self.onProgress = onProgress }

  mutating func run(_ store: ReportStore, rounds: Int) async {
    for round in 0..<rounds {
      await append(store, count: 1 + round * 7 % 20)
      if round % 3 == 2 { await deliver(store) }
      await changeRecords(store, round: round)
      await ring.step(store, round: round)
      await pullTriggers(store, round: round)
      onProgress(self)
      // Errors are what is tested here: what was not acknowledged is not expected.
      if round % 5 == 4 { _ = try? await store.maintain() }
      company?.takeTurn()
    }
  }

  private mutating func pullTriggers(_ store: ReportStore, round: Int) async {
    var (work, known) = (triggers, self)
    await work.step(store, round: round) {
      known.triggers = $0
      onProgress(known)
    }
    triggers = work
  }

  private mutating func changeRecords(_ store: ReportStore, round: Int) async {
    var work = records
    var known = self
    await work.step(store, round: round) {
      known.records = $0
      onProgress(known)
    }
    records = work
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

  /// Fills the window. Then two packets are delivered, the next one is split, and the last one is released.
  private mutating func deliver(_ store: ReportStore) async {
    let claims = (window.count..<Self.windowMax).map { _ in Reports.claim(5) }
    guard let claimed = try? await store.turn(UploadCommit(claims: claims)) else { return }
    window += claimed.compactMap { $0 }
    frozen = Set(window.map(\.id))
    onProgress(self)
    await append(store, count: 3)
    await settle(store)
  }

  private mutating func settle(_ store: ReportStore) async {
    guard window.count >= 4 else { return }
    let (delivered, split, released) = (Array(window[..<2]), window[2], window[window.count - 1])
    window = Array(window[3..<window.count - 1])
    frozen = Set(window.map(\.id))
    leaving.formUnion(delivered.flatMap(\.rowTexts).compactMap { Reports.number(in: $0) })
    onProgress(self)
    let dispositions =
      delivered.map { Disposition.delivered($0.id, receipt: Reports.receipt) }
      + [.split(split.id, first: Reports.claim().packetID, second: Reports.claim().packetID), .released(released.id)]
    _ = try? await store.turn(UploadCommit(dispositions: dispositions))
  }
}
