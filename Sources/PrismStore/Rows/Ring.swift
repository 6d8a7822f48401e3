import PrismProtocol
import PrismSQLite

/// The ring of a namespace: rows of types with `keep: ring` stay in it until newer ones need their place, or until they were
/// held for long. It is emptied in whole segments, the oldest first, so that it costs little (docs/recorder.md).
struct Ring: PlainOperations {
  /// Of its bound, in bytes and in hours, a segment takes one of this many shares.
  private static let segmentsPerRing = 8

  let transaction: StoreTransaction

  // MARK: New rows

  /// Begins the first segment, or another one if the current one has its share. Called before rows are kept.
  func makeRoom(_ queue: QueueID, bytesMax: Int = .max) throws(SQLiteError) {
    guard let place = state[queue].segments.lastPlace(isRing: true) else { return try begin(queue) }
    let current = state[queue].segments[place]
    if current.bytes >= bytesMax / Self.segmentsPerRing {
      try begin(queue)
    } else if current.bytes == 0 {
      // It is as old as its first row, not as its place in the list.
      state[queue].segments.removeEmpty(at: place)
      try begin(queue)
    }
  }

  private func begin(_ queue: QueueID) throws(SQLiteError) {
    guard state[queue].segments.list.count < RowSegments.countMax || state[queue].segments.currentRing == nil else {
      return
    }
    try Segments(transaction).begin(queue, isRing: true)
  }

  /// Rows were kept. They are in the current segment.
  func count(_ rows: Int, bytes: Int, hasClientIDs: Bool, _ queue: QueueID) {
    guard let place = state[queue].segments.lastPlace(isRing: true), rows > 0 || bytes != 0 else { return }
    state[queue].ledger.stored += rows
    state[queue].ledger[.kept] += rows
    state[queue].segments[place].bytes += bytes
    state[queue].segments.keep(rows, bytes: bytes, hasClientIDs: hasClientIDs, at: place)
    state[queue].lastSequence = state.nextSequence - 1
    transaction.touch(queue)
  }

  // MARK: Bounds

  /// Overwrites the oldest segments of both kinds until the rest is within the bound.
  func overwrite(_ namespace: Int, bytesMax: Int) throws(SQLiteError) {
    let queues = QueueID.all(of: namespace)
    while queues.reduce(0, { $0 + state[$1].segments.keptBytes }) > bytesMax, let oldest = oldest(queues) {
      try overwrite(oldest.queue, at: oldest.place)
    }
  }

  private func oldest(_ queues: [QueueID]) -> (queue: QueueID, place: Int)? {
    let first = queues.compactMap { queue in
      state[queue].segments.list.firstIndex { ($0.kept?.rows ?? 0) > 0 }.map { (queue: queue, place: $0) }
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
  private func overwrite(_ queue: QueueID, at place: Int) throws(SQLiteError) {
    let segment = state[queue].segments[place]
    guard let kept = segment.kept else { return }
    let others = state[queue].leaving(at: place)
    let table = RowTable(queue, number: segment.number)
    if kept.hasClientIDs { try freeClientIDs(others, queue, table) }
    if others.isEmpty {
      try Segments(transaction).clear(segment, table)
      state[queue].segments.removeEmpty(at: place)
    } else {
      let deleted = try delete(between: IDRuns(union: [others, segment.spent]), table)
      guard deleted == kept.rows else { throw .invalidContent }
      state[queue].segments.keep(-kept.rows, bytes: -kept.bytes, at: place)
    }
    state[queue].ledger.move(kept.rows, from: .kept, to: .overwritten)
    transaction.touch(queue)
  }

  private func delete(between runs: IDRuns, _ table: RowTable) throws(SQLiteError) -> Int {
    var deleted = 0
    for gap in runs.gaps where gap.after < gap.end - 1 {
      try transaction.statement(.rows(.deleteRange, table)).run([":first": gap.after + 1, ":last": gap.end - 1])
      deleted += transaction.database.connection.changes
    }
    return deleted
  }

  private func freeClientIDs(_ others: IDRuns, _ queue: QueueID, _ table: RowTable) throws(SQLiteError) {
    var members = IDRuns()
    for (row, key) in try transaction.clientIDs(in: table) where others.run(of: row) == nil {
      try members.append(read: row)
      try transaction.freeClientID(key, of: row, queue)
    }
    transaction.memory.noteDeparture(of: members, queue, to: .overwritten)
  }

  // MARK: Single rows

  /// Kept rows are about to leave the ring one by one: removed, or found damaged.
  func forget(_ members: IDRuns, _ queue: QueueID, to account: Ledger.Account) throws(SQLiteError) {
    for (place, run) in state[queue].segments.pieces(of: members) {
      let piece = IDRuns(run)
      state[queue].segments.keep(-run.count, bytes: -(try transaction.bytes(of: piece, queue)), at: place)
    }
    state[queue].ledger.move(members.count, from: .kept, to: account)
    transaction.touch(queue)
  }

  // MARK: Looking at kept rows, and letting them go

  /// Calls `body` with each kept row of a known type below an id, the newest first, until it returns false.
  func walkKept(
    _ queue: QueueID, before end: Int64, _ body: (StoredRow, SQLiteRow<StoredRow.Column>) throws(SQLiteError) -> Bool
  ) throws(SQLiteError) {
    for segment in state[queue].segments.list.reversed() where (segment.kept?.rows ?? 0) > 0 {
      let rows = try transaction.statement(.rows(.walkBack, RowTable(queue, number: segment.number))).bind([":end": end]
      )
      defer { rows.reset() }
      while let row = try rows.next(of: StoredRow.Column.self) {
        let stored = StoredRow(row, hasPayload: queue.kind.hasPayload)
        guard !state[queue].isLeaving(stored.id), state.names.types[stored.type] != nil else { continue }
        guard try body(stored, row) else { return }
      }
    }
  }

  /// Of a row of metas with its payload.
  func keptBytes(of row: StoredRow, _ payloads: QueueID) throws(SQLiteError) -> Int {
    guard state[payloads].ledger[.kept] > 0 else { return Int(row.size) }
    let member = IDRuns(row.id)
    return Int(row.size) + (try transaction.bytes(of: member, payloads))
  }

  /// The value of a member of a row's meta, its own or its context's.
  func value(of key: String, in row: StoredRow, _ queue: QueueID) throws(SQLiteError) -> JSONValue? {
    if let own = Enriching.value(key, in: Array(row.body)) { return own }
    guard !row.flags.contains(.selfContained), let rendering = try transaction.rendering(of: row, queue) else {
      return nil
    }
    return Enriching.value(key, in: rendering.context)
  }

  /// Lets kept rows of metas go, with their payloads. - Parameter rule: what they leave with as `TRIGGER`.
  /// - Returns: how many rows of both kinds were kept until now.
  func letGo(_ members: IDRuns, _ namespace: Int, by rule: String) throws(SQLiteError) -> Int {
    let (metas, payloads) = (
      QueueID(namespace: namespace, kind: .meta), QueueID(namespace: namespace, kind: .payload)
    )
    var withPayload = IDRuns()
    if state[payloads].ledger[.kept] > 0 {
      for id in members.ids where !state[payloads].isLeaving(id) {
        let member = IDRuns(id)
        if try transaction.bytes(of: member, payloads) > 0 { withPayload.append(id) }
      }
    }
    for (queue, members) in [(metas, members), (payloads, withPayload)] where !members.isEmpty {
      try forget(members, queue, to: .waiting)
      try transaction.letGo(members, queue, by: rule)
    }
    return members.count + withPayload.count
  }
}
