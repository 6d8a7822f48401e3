import PrismProtocol
import PrismSQLite

/// Looks into queues for `prismctl` and the metrics, and changes nothing.
struct QueueReading: PlainOperations {
  private static let rowsPerSlice = 20_000

  let transaction: StoreTransaction

  // MARK: Status

  /// Of every namespace that ever stored something.
  func status() throws(SQLiteError) -> [NamespaceName: [RowKind: QueueStatus]] {
    var status = try state.status { (queue) throws(SQLiteError) in try oldestAge(queue) }
    for (namespace, expiry) in transaction.memory.policies.expiries { status[namespace]?[.meta]?.expiry = expiry }
    return status
  }

  /// Of the first row of each priority, in flight or not.
  private func oldestAge(_ queue: QueueID) throws(SQLiteError) -> Duration? {
    guard state[queue].ledger[.waiting] + state[queue].ledger[.claimed] > 0 else { return nil }
    var oldest: Duration?
    for priority in Priority.leaving {
      var rows = RowWalk<RowHead.Column>(priority, queue, skipsClaimed: false, transaction)
      defer { rows.reset() }
      guard let first = try rows.next() else { continue }
      let stated = transaction.unixMilliseconds.subtractingReportingOverflow(first.int64(.createdTime)).partialValue
      let age = transaction.memory.held.age(
        of: RowID(value: first.int64(.id)).sequence, stated: stated, transaction.uptime)
      oldest = max(oldest ?? .zero, age)
    }
    return oldest
  }

  /// The rows and counts that the last run left, of every namespace that ever stored something.
  func remains() throws(SQLiteError) -> [NamespaceName: NamespaceRemains] {
    var notes: [Int: [String: [UInt8]]] = [:]
    for note in try transaction.database.connection.notes() {
      notes[note.namespace, default: [:]][note.key] = note.value
    }
    var remains: [NamespaceName: NamespaceRemains] = [:]
    for (number, name) in state.names.namespaces {
      let hasReports = QueueID.all(of: number).contains { queue in
        state[queue].ledger[.waiting] + state[queue].ledger[.claimed] > 0
      }
      remains[name] = NamespaceRemains(
        notes: notes[number] ?? [:], hasReports: hasReports, hasRecords: RecordReading(state).hasWork(name))
    }
    return remains
  }

  // MARK: Rows

  /// How many rows of which type a namespace holds. Looks at all of them, for as long as a dry run may take.
  func typeCounts(_ namespace: NamespaceName) throws(SQLiteError) -> TypeCounts {
    guard let namespace = state.names.number(of: namespace) else { return TypeCounts() }
    let deadline = transaction.uptime + DryRun.durationMax
    var counts = TypeCounts()
    for queue in state.queues(of: namespace) {
      var found: [ReportType: Int] = [:]
      for segment in state[queue].segments.list {
        try count(segment, queue, until: deadline, isComplete: &counts.isComplete, into: &found)
      }
      if queue.kind == .meta {
        counts.metas.merge(found, uniquingKeysWith: +)
      } else {
        counts.payloads.merge(found, uniquingKeysWith: +)
      }
    }
    return counts
  }

  private enum CountColumn: String, SQLiteColumn {
    case type
    case count = "count(*)"
    case last = "max(id)"
  }

  private func count(
    _ segment: RowSegment, _ queue: QueueID, until deadline: Duration, isComplete: inout Bool,
    into result: inout [ReportType: Int]
  ) throws(SQLiteError) {
    let slice = try transaction.prepare(
      """
      SELECT \(CountColumn.list)
      FROM (SELECT type, id FROM \(RowTable(queue, number: segment.number).name) WHERE id > :after AND id < :end
      ORDER BY id LIMIT \(Self.rowsPerSlice)) GROUP BY type
      """)
    for range in segment.spent.gaps where isComplete {
      try count(slice, range, until: deadline, isComplete: &isComplete, into: &result)
    }
  }

  private func count(
    _ slice: SQLiteStatement, _ range: (after: Int64, end: Int64), until deadline: Duration, isComplete: inout Bool,
    into result: inout [ReportType: Int]
  ) throws(SQLiteError) {
    var last = range.after
    slice.bind(":end", range.end)
    while true {
      slice.bind(":after", last)
      var rows = 0
      try slice.forEachRow(of: CountColumn.self) { row in
        rows += row.int(.count)
        last = max(last, row.int64(.last))
        // Only a damaged row has a type without a name.
        if let type = state.names.types[row.int64(.type)] { result[type, default: 0] += row.int(.count) }
      }
      if rows < Self.rowsPerSlice { return }
      guard transaction.uptime < deadline else {
        isComplete = false
        return
      }
    }
  }

  /// A page of rows as they would leave, by ascending id, those in flight among them.
  /// - Parameter after: the last id of the page before; 0 for the first.
  func export(
    _ namespace: NamespaceName, _ kind: RowKind, after: Int64, limit: Int
  ) throws(SQLiteError) -> [ExportedRow] {
    guard let number = state.names.number(of: namespace) else { return [] }
    var pages: [ExportedRow] = []
    for queue in state.queues(of: number) where queue.kind == kind {
      var page: [ExportedRow] = []
      for priority in Priority.allCases where after < priority.idEnd {
        let rows = RowWalk<StoredRow.Column>(
          priority, queue, after: max(after, PriorityValues.bases[priority]), skipsClaimed: false,
          transaction)
        try add(rows, queue, limit, to: &page)
      }
      pages += page
    }
    return Array(pages.sorted { $0.id < $1.id }.prefix(limit))
  }

  private func add(
    _ walk: RowWalk<StoredRow.Column>, _ queue: QueueID, _ limit: Int, to page: inout [ExportedRow]
  ) throws(SQLiteError) {
    var rows = walk
    defer { rows.reset() }
    while page.count < limit, let row = try rows.next() {
      let stored = StoredRow(row, hasPayload: queue.kind.hasPayload)
      // A damaged row is not shown as if it were a report; the next claim sets it aside.
      guard StoredRow.isWhole(stored, row), let rendering = try transaction.rendering(of: stored, queue) else {
        continue
      }
      page.append((stored.id, rendering.whole(stored), stored.payload.map { [UInt8]($0) }))
    }
  }
}

typealias ExportedRow = (id: Int64, meta: [UInt8], payload: [UInt8]?)

extension StoreState {
  /// Of every namespace that ever stored something, as of the last commit.
  func status<Failure>(
    _ oldestAge: (QueueID) throws(Failure) -> Duration?
  ) throws(Failure) -> [NamespaceName: [RowKind: QueueStatus]] {
    var result: [NamespaceName: [RowKind: QueueStatus]] = [:]
    for (number, namespace) in names.namespaces {
      for queue in QueueID.all(of: number) {
        var status = QueueStatus(ledger: ledger(queue), bytes: self[queue].bytes, oldestAge: try oldestAge(queue))
        let inMemory = self[queue.inMemory]
        status.inMemory = KeptInMemory(
          rows: inMemory.ledger[.kept], bytes: inMemory.segments.keptBytes, lost: inMemory.ledger[.lostWithPower])
        status.keptBytes = self[queue].segments.keptBytes + inMemory.segments.keptBytes
        status.setBack = self[queue].setBack.count
        if queue.kind == .meta { status.filtered = counts.filtered[number] ?? FilterCounts() }
        result[namespace, default: [:]][queue.kind] = status
      }
    }
    return result
  }
}

extension PacketInFlight {
  init(_ record: PacketRecord, _ clocks: ClockBook) {
    self.init(
      id: record.id, itemCount: record.members.count,
      claimed: record.clock.flatMap { clocks.moment(record.createdTime, of: $0) })
  }
}
