import PrismProtocol
import PrismSQLite

/// Steps through the rows of one priority in their order, over all tables of their queue. Skips delivered rows, and if wanted
/// those of packets in flight.
struct RowWalk<Column: WalkedColumn> {
  private let transaction: StoreTransaction
  private let queueID: QueueID
  /// As it was at the beginning: looked up for every row, it would be copied for every row.
  private let queue: QueueState
  private let (base, end): (Int64, Int64)
  private let skipsClaimed: Bool
  private var place: Int
  /// On the table of the segment at `place`; nil: it is not bound yet.
  private var rows: SQLiteStatement?
  /// Of that segment.
  private var spent = IDRuns()
  /// Above every id that a row of that segment can have.
  private var idEnd: Int64 = 0
  /// Every row at or below it was passed.
  private(set) var passed: Int64

  /// - Parameter after: the row behind which it begins; nil: at the first one.
  init(
    _ priority: Priority, _ queueID: QueueID, after: Int64? = nil, skipsClaimed: Bool = true,
    _ transaction: StoreTransaction
  ) {
    (self.transaction, self.queueID, self.skipsClaimed) = (transaction, queueID, skipsClaimed)
    queue = transaction.state[queueID]
    (base, end) = (PriorityValues.bases[priority], priority.idEnd)
    passed = after ?? base
    place = queue.segments.place(of: passed)
  }

  /// - Returns: nil if there are no more; else the row, valid until the next call.
  /// - Throws: `invalidContent` for a row out of its order, or behind its segment. A damaged tree may lead back, for ever;
  ///   a packet up to a damaged id would have all rows below it.
  mutating func next() throws(SQLiteError) -> SQLiteRow<Column>? {
    while place < queue.segments.list.count {
      if rows == nil { try bind() }
      guard let rows else { return nil }
      guard let row = try rows.next(of: Column.self) else {
        reset()
        place += 1
        continue
      }
      let id = row.int64(.id)
      guard id > passed, id < idEnd else { throw .invalidContent }
      passed = id
      guard let run = skippedRun(of: id) else { return row }
      passed = run.last
      reset()
    }
    return nil
  }

  private mutating func bind() throws(SQLiteError) {
    let table = RowTable(queueID, number: queue.segments.list[place].number)
    spent = queue.segments.list[place].spent
    idEnd = base + (queue.segments.next(place).map { queue.segments[$0].first } ?? transaction.state.nextSequence)
    let rows = try transaction.statement(.rows(Column.walk, table))
    rows.reset()
    rows.bind([":after": passed, ":end": end])
    self.rows = rows
  }

  /// The next call continues behind `id`.
  mutating func skip(to id: Int64) {
    reset()
    passed = id
    place = max(place, queue.segments.place(of: id))
  }

  private func skippedRun(of id: Int64) -> IDRuns.Run? {
    if !spent.isEmpty, let run = spent.run(of: id) { return run }
    return skipsClaimed ? queue.claimedRun(of: id) : nil
  }

  /// The next call continues behind the last row.
  mutating func reset() {
    rows?.reset()
    rows = nil
  }
}

extension RowWalk<RowHead.Column> {
  /// - Returns: nil if there are no more.
  mutating func nextHead() throws(SQLiteError) -> RowHead? { try next().map { RowHead($0) } }
}

protocol WalkedColumn: SQLiteColumn {
  static var id: Self { get }
  static var walk: RowStatement { get }
}

extension StoredRow.Column: WalkedColumn { static var walk: RowStatement { .walk } }
extension RowHead.Column: WalkedColumn { static var walk: RowStatement { .walkHeads } }
