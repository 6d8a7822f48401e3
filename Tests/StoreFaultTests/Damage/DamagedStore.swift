import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization

/// A log in memory.
final class LogBook: Sendable {
  private let kept = Mutex<[String]>([])
  var lines: [String] { kept.withLock { $0 } }
  @Sendable func write(_ line: String) { kept.withLock { $0.append(line) } }
}

/// A store with everything in it that can be damaged, and the record of the rows that were stored in it.
final class DamagedStore {
  let folder = FaultFolder()
  private let book = LogBook()
  private(set) var stored: Set<Int> = []
  /// Answered by the collector: these must not come back.
  private(set) var delivered: Set<Int> = []
  private var next = 0

  /// The lines of the log.
  var log: [String] { book.lines }

  /// - Parameter onMove: called at each step of moving a database away or back.
  func open(onMove: (@Sendable () -> Void)? = nil) async throws -> ReportStore {
    var options = StoreOptions(folder: folder.path)
    (options.ballastBytes, options.onMove, options.segmentBytes) = (0, onMove, 8192)
    options.checkpointInterval = .zero
    options.log = Logger(write: book.write)
    return try await ReportStore.openOnceFree(options)
  }

  /// Reports that wait, are on their way, are dead, and were delivered.
  func fill(_ store: ReportStore) async throws {
    for _ in 0..<4 { await append(store, 40) }
    try await deliver(store, 30)
    _ = try await store.turn(UploadCommit(claims: [Reports.claim(25)]))
    let dead = try await store.turn(UploadCommit(claims: [Reports.claim(3)]))[0]
    if let dead {
      let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 1, attempts: 1)
      _ = try await store.turn(UploadCommit(dispositions: [.dead(dead.id, cause: cause)]))
    }
    while try await store.maintain() {}
    for _ in 0..<4 { await append(store, 20) }
    try await deliver(store, 10)
  }

  /// false: it was not taken.
  @discardableResult
  func append(_ store: ReportStore, _ count: Int) async -> Bool {
    let numbers = next..<next + count
    next += count
    guard case .committed = await store.append([Reports.batch(numbers)]) else { return false }
    stored.formUnion(numbers)
    return true
  }

  func deliver(_ store: ReportStore, _ count: Int) async throws {
    guard let packet = try await store.turn(UploadCommit(claims: [Reports.claim(count)])).first ?? nil else { return }
    let numbers = packet.rowTexts.map { Reports.number(in: $0) }
    let disposition = Disposition.delivered(packet.id, receipt: Reports.receipt)
    do {
      _ = try await store.turn(UploadCommit(dispositions: [disposition]))
      delivered.formUnion(numbers.compactMap { $0 })
    } catch {
      // Whether it holds is open: it may come again, under the same id, or be gone.
      stored.subtract(numbers.compactMap { $0 })
    }
  }

  /// The rows that the store holds now, every packet and dead letter among them.
  func held(_ store: ReportStore) async throws -> [Int?] {
    _ = try await store.requeue(.all(nil))
    return try await store.held()
  }

  func corruptCount(_ store: ReportStore) async throws -> Int {
    try await store.status().values.reduce(0) { sum, kinds in
      kinds.values.reduce(sum) { $0 + $1.ledger[.corrupt] }
    }
  }
}
