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
      let owners = try counts(queue, at: place).byOwner
      state[queue].segments[place].kept?.owners = owners
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
    let (others, table) = (state[queue].leaving(at: place), RowTable(queue, number: segment.number))
    // nil: all, which the segment's own counts say.
    var gone: [OwnedRows]?
    if let owners, kept.owners?.keys.contains(where: { !owners.contains($0) }) ?? true {
      gone = try counts(queue, at: place).filter { owners.contains($0.owner) }
      if gone?.isEmpty == true { gone = nil }
    }
    let (rows, contexts) = (gone?.reduce(0) { $0 + $1.rows.rows } ?? kept.rows, gone.map { Set($0.map(\.context)) })
    if queue.kind == .meta, reports(queue.namespace) {
      let types = if let gone { gone.byType } else { try types(queue, at: place) }
      try note(types, .overwritten, queue.namespace)
    }
    if kept.hasClientIDs { try freeClientIDs(others, queue, table, of: contexts) }
    if others.isEmpty, gone == nil {
      try Segments(transaction).clear(segment, table)
      state[queue].segments.removeEmpty(at: place)
    } else {
      let deleted = try delete(between: IDRuns(union: [others, segment.spent]), table, of: contexts)
      guard deleted == rows else { throw .invalidContent }
      let bytes = gone?.byOwner.mapValues { -$0 } ?? [.uncounted: -kept.bytes]
      state[queue].segments.keep(-rows, bytes, at: place)
      if let gone {
        state[queue].segments.keep(gone.byType.mapValues { -$0 }, at: place)
      } else {
        state[queue].segments[place].kept?.types = [:]
      }
    }
    state[queue].ledger.move(rows, from: .kept, to: .overwritten)
    transaction.touch(queue)
  }

  /// - Parameter contexts: rows of these only; nil: all.
  private func delete(
    between runs: IDRuns, _ table: RowTable, of contexts: Set<Int64>? = nil
  ) throws(SQLiteError) -> Int {
    let list = contexts.map { "[" + $0.map { "\($0)" }.joined(separator: ",") + "]" }
    var deleted = 0
    for gap in runs.gaps where gap.after < gap.end - 1 {
      let (first, last) = (gap.after + 1, gap.end - 1)
      if let list {
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
