public import PrismProtocol
import PrismSQLite

/// An erasure that goes on: what was erased until now, and where to go on.
public struct ErasureRun: Sendable {
  fileprivate enum Step { case rows, dead, rest, complete }

  fileprivate let namespace: NamespaceName
  /// nil: all reports are meant.
  fileprivate let isMeant: (@Sendable ([UInt8]) -> Bool)?
  fileprivate var step = Step.rows
  /// nil: it has not begun.
  fileprivate var places: [RowPlace]?
  /// The number of the last dead letter that was looked at.
  fileprivate var lastLetter = 0
  fileprivate var (metas, payloads, dead, damaged) = (0, 0, 0, 0)
  /// Rows of packets that may be at the collector already. They stay until they have left.
  public fileprivate(set) var inPackets = 0

  /// - Parameter isMeant: tells by its meta which report is erased; nil: all are.
  public init(of namespace: NamespaceName, where isMeant: (@Sendable ([UInt8]) -> Bool)?) {
    (self.namespace, self.isMeant) = (namespace, isMeant)
  }

  /// Nothing is left to do.
  public var isComplete: Bool { step == .complete }

  /// The counts, a flat object.
  public var json: JSONValue {
    JSONValue(["reports": metas, "payloads": payloads, "dead": dead, "damaged": damaged, "inPackets": inPackets])
  }
}

/// Erases reports on a server's order (docs/records.md, "Commands").
struct Erasing: PlainOperations {
  /// Rows that one slice looks at: some milliseconds.
  private static let rowsPerSlice = 2000
  private static let lettersPerSlice = 100

  let transaction: StoreTransaction

  func slice(_ run: inout ErasureRun) throws(SQLiteError) {
    guard let number = state.names.number(of: run.namespace) else {
      run.step = .complete
      return
    }
    switch run.step {
    case .rows: try eraseRows(&run, number)
    case .dead: try eraseLetters(&run, number)
    case .rest: try eraseRest(&run, number)
    case .complete: break
    }
  }

  private func eraseRows(_ run: inout ErasureRun, _ namespace: Int) throws(SQLiteError) {
    var places = run.places ?? RowPlace.begins(of: state.queues(of: namespace))
    defer { run.places = places }
    guard var place = places.popLast() else {
      run.step = .dead
      return
    }
    let queue = place.queue
    var (chosen, isMore): ([(id: Int64, size: Int)], Bool) = ([], true)
    var rows = RowWalk<StoredRow.Column>(
      place.priority, queue, after: place.after, skipsClaimed: false, transaction)
    for _ in 0..<Self.rowsPerSlice {
      guard let raw = try rows.next() else {
        isMore = false
        break
      }
      let row = StoredRow(raw, hasPayload: queue.kind.hasPayload)
      place.after = row.id
      // The next claim sets a damaged row aside.
      guard StoredRow.isWhole(row, raw), try isMeant(row, queue, run) else { continue }
      if state[queue].claimedRun(of: row.id) == nil {
        chosen.append((row.id, Int(row.size)))
      } else {
        run.inPackets += 1
      }
    }
    rows.reset()
    try transaction.drop(chosen, queue, to: .removed)
    if queue.kind == .meta { run.metas += chosen.count } else { run.payloads += chosen.count }
    if isMore { places.append(place) }
  }

  private func isMeant(_ row: StoredRow, _ queue: QueueID, _ run: ErasureRun) throws(SQLiteError) -> Bool {
    guard let isMeant = run.isMeant else { return true }
    guard let rendering = try transaction.rendering(of: row, queue) else { return false }
    return isMeant(rendering.whole(row))
  }

  private func eraseLetters(_ run: inout ErasureRun, _ namespace: Int) throws(SQLiteError) {
    let letters = DeadLetters(transaction)
    let page = try letters.page(of: run.namespace, after: run.lastLetter, limit: Self.lettersPerSlice)
    for letter in page {
      let meta = try letters.content(.number(letter.number))?.meta ?? []
      if run.isMeant?(meta) ?? true { run.dead += try letters.drop(.number(letter.number)) }
    }
    if let last = page.last {
      run.lastLetter = last.number
      return
    }
    state.contexts.sweeps.countsBefore[namespace] = nil
    run.step = .rest
  }

  /// Bytes of reports that left: of delivered ones that are still in their tables, of contexts, and of damaged rows, of which it
  /// can't be said what they were.
  private func eraseRest(_ run: inout ErasureRun, _ namespace: Int) throws(SQLiteError) {
    for queue in QueueID.all(of: namespace) {
      if try Segments(transaction).sweep(queue, all: true) { return }
    }
    if try UnusedContexts(transaction).sweep(countMin: 1) { return }
    try eraseFollowed(namespace)
    let damaged = try transaction.prepare("DELETE FROM damaged WHERE namespace = :namespace")
    try damaged.run([":namespace": Int64(namespace)])
    run.damaged += transaction.database.connection.changes
    run.step = .complete
  }

  /// A trigger notes the value that the reports behind it share.
  private func eraseFollowed(_ namespace: Int) throws(SQLiteError) {
    for (rule, before) in state.counts.triggers[namespace] ?? [:] {
      var after = before
      for user in after.users.keys { after.users[user]?.following = .init() }
      guard after != before else { continue }
      state.counts.triggers[namespace]?[rule] = after
      try transaction.write(after.note, TriggerState.keyPrefix + rule, namespace)
    }
  }
}

extension ReportStore {
  /// Erases the next slice. Call it until the run is complete. The last call rewrites the file, in which no byte of them stays: that
  /// needs as much space again, and everybody waits.
  public func erase(_ run: ErasureRun) throws(StoreError) -> ErasureRun {
    var run = run
    try write { (transaction) throws(SQLiteError) in try Erasing(transaction).slice(&run) }
    if run.isComplete { try scrub() }
    return run
  }
}
