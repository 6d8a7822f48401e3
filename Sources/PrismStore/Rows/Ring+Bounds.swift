import PrismProtocol
import PrismSQLite

// The bounds of a ring, in bytes and in time.
extension Ring {
  /// Overwrites rows of both kinds until the rest is within the bound.
  func overwrite(_ queues: [QueueID], bytesMax: Int) throws(SQLiteError) {
    while queues.reduce(0, { $0 + state[$1].segments.keptBytes }) > bytesMax, try overwriteOldest(queues) {}
  }

  /// Overwrites the oldest segment with rows of users who hold more than an equal share, or those rows of it: a user who holds no
  /// more loses nothing to others. - Returns: false: nothing is kept.
  func overwriteOldest(_ queues: [QueueID]) throws(SQLiteError) -> Bool {
    let held = queues.reduce(into: [RowOwner: Int]()) { held, queue in
      for segment in state[queue].segments.list where segment.kept?.rows ?? 0 > 0 {
        held.merge(segment.kept?.owners ?? [.uncounted: segment.kept?.bytes ?? 0], uniquingKeysWith: +)
      }
    }
    let level = FairShares.level(of: Array(held.values), fitting: max(0, held.values.reduce(-1, +)))
    let over = Set(held.filter { $0.value > level }.keys)
    let oldest = oldest(queues) { kept in
      guard let owners = kept.owners else { return true }
      return over.contains { (owners[$0] ?? 0) > 0 }
    }
    guard let (queue, place) = oldest else { return false }
    // After a start: whose rows they are decides what goes.
    if state[queue].segments[place].kept?.owners == nil {
      let counted = try counts(queue, at: place).map { ($0.owner, $0.rows.bytes) }
      state[queue].segments[place].kept?.owners = Dictionary(counted, uniquingKeysWith: +)
      return true
    }
    try overwrite(queue, at: place, of: over)
    return true
  }

  private func oldest(
    _ queues: [QueueID], where isWanted: (RowSegment.Kept) -> Bool
  ) -> (queue: QueueID, place: Int)? {
    let first = queues.compactMap { queue in
      state[queue].segments.list.firstIndex { $0.kept.map { $0.rows > 0 && isWanted($0) } ?? false }
        .map { (queue: queue, place: $0) }
    }
    return first.min { state[$0.queue].segments[$0.place].first < state[$1.queue].segments[$1.place].first }
  }

  /// Overwrites segments with a row that was held for longer than `hours`, and begins another segment after a share of them.
  func age(_ queue: QueueID, hours: Int) throws(SQLiteError) {
    let (held, now) = (transaction.memory.held, transaction.uptime)
    let end = held.end(heldFor: 0, hours: hours, now)
    while let place = state[queue].segments.list.firstIndex(where: { ($0.kept?.rows ?? 0) > 0 && $0.first < end }) {
      try overwrite(queue, at: place)
    }
    let shareEnd = held.end(heldFor: 0, hours: hours / Self.segmentsPerRing, now)
    if let current = state[queue].segments.currentRing, current.bytes > 0, current.first < shareEnd { try begin(queue) }
  }

  /// The kept rows of a segment go. Those that may leave, or are on their way, stay until they have left.
  /// - Parameter owners: those of these users only; nil: all.
  private func overwrite(_ queue: QueueID, at place: Int, of owners: Set<RowOwner>? = nil) throws(SQLiteError) {
    let segment = state[queue].segments[place]
    guard let kept = segment.kept else { return }
    if let owners, kept.owners?.keys.contains(where: { !owners.contains($0) }) ?? true {
      let gone = try counts(queue, at: place).filter { owners.contains($0.owner) }
      if !gone.isEmpty { return try overwrite(queue, at: place, among: gone) }
    }
    let others = state[queue].leaving(at: place)
    if queue.kind == .meta, reports(queue.namespace) {
      try note(try types(queue, at: place), .overwritten, queue.namespace)
    }
    let table = RowTable(queue, number: segment.number)
    if kept.hasClientIDs { try freeClientIDs(others, queue, table) }
    if others.isEmpty {
      try Segments(transaction).clear(segment, table)
      state[queue].segments.removeEmpty(at: place)
    } else {
      let deleted = try delete(between: IDRuns(union: [others, segment.spent]), table)
      guard deleted == kept.rows else { throw .invalidContent }
      state[queue].segments.keep(-kept.rows, [.uncounted: -kept.bytes], at: place)
      state[queue].segments[place].kept?.types = [:]
    }
    state[queue].ledger.move(kept.rows, from: .kept, to: .overwritten)
    transaction.touch(queue)
  }

  /// The kept rows of some users go, and those of others stay in the segment.
  private func overwrite(_ queue: QueueID, at place: Int, among gone: [OwnedRows]) throws(SQLiteError) {
    let (segment, table) = (state[queue].segments[place], RowTable(queue, number: state[queue].segments[place].number))
    let (others, contexts) = (state[queue].leaving(at: place), Set(gone.map(\.context)))
    let types = Dictionary(gone.map { ($0.type, $0.rows) }, uniquingKeysWith: +)
    if queue.kind == .meta, reports(queue.namespace) { try note(types, .overwritten, queue.namespace) }
    if segment.kept?.hasClientIDs ?? false { try freeClientIDs(others, queue, table, of: contexts) }
    let rows = types.values.reduce(0) { $0 + $1.rows }
    let deleted = try delete(between: IDRuns(union: [others, segment.spent]), table, of: contexts)
    guard deleted == rows else { throw .invalidContent }
    let owners = Dictionary(gone.map { ($0.owner, -$0.rows.bytes) }, uniquingKeysWith: +)
    state[queue].segments.keep(-rows, owners, at: place)
    state[queue].segments.keep(types.mapValues { -$0 }, at: place)
    state[queue].ledger.move(rows, from: .kept, to: .overwritten)
    transaction.touch(queue)
  }

  /// - Parameter contexts: rows of these only; nil: all.
  private func delete(
    between runs: IDRuns, _ table: RowTable, of contexts: Set<Int64>? = nil
  ) throws(SQLiteError) -> Int {
    var deleted = 0
    for gap in runs.gaps where gap.after < gap.end - 1 {
      let (first, last) = (gap.after + 1, gap.end - 1)
      if let contexts {
        let list = "[" + contexts.map { "\($0)" }.joined(separator: ",") + "]"
        try transaction.statement(.rows(.deleteOfContexts, table)).run([
          ":first": first, ":last": last, ":contexts": list,
        ])
      } else {
        try transaction.statement(.rows(.deleteRange, table)).run([":first": first, ":last": last])
      }
      deleted += transaction.database.connection.changes
    }
    return deleted
  }

  private func freeClientIDs(
    _ others: IDRuns, _ queue: QueueID, _ table: RowTable, of contexts: Set<Int64>? = nil
  ) throws(SQLiteError) {
    var members = IDRuns()
    for (row, key, context) in try transaction.clientIDs(in: table)
    where others.run(of: row) == nil && contexts?.contains(context) ?? true {
      try members.append(read: row)
      try transaction.freeClientID(key, of: row, queue)
    }
    transaction.memory.noteDeparture(of: members, queue, to: .overwritten)
  }
}
