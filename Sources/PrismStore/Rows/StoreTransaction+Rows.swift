import PrismBase
import PrismProtocol
import PrismSQLite

// Rows that leave the store without a packet, or wait again.
extension StoreTransaction {
  /// Deletes rows that wait: expired, evicted, cleared or removed. Their clients' ids are free again.
  /// - Parameter bytes: the sum of their sizes.
  func drop(
    _ members: IDRuns, bytes: Int, _ queue: QueueID, to account: Ledger.Account
  ) throws(SQLiteError) {
    guard !members.isEmpty else { return }
    try freeClientIDs(of: members, queue)
    try ShareCount(self).discount(members, queue)
    try deleteRows(members, queue)
    state[queue].remove(members.count, bytes: bytes, from: .waiting, to: account)
    memory.noteDeparture(of: members, queue, to: account)
    touch(queue)
  }

  /// The same for rows in any order, kept ones among them.
  func drop(_ rows: [(id: Int64, size: Int)], _ queue: QueueID, to account: Ledger.Account) throws(SQLiteError) {
    var (members, bytes, kept) = (IDRuns(), 0, IDRuns())
    for row in rows.sorted(by: { $0.id < $1.id }) {
      if RowID.isKept(row.id) {
        try kept.append(read: row.id)
      } else {
        try members.append(read: row.id)
        bytes += row.size
      }
    }
    try drop(members, bytes: bytes, queue, to: account)
    guard !kept.isEmpty else { return }
    try freeClientIDs(of: kept, queue)
    let released = Set(kept.ids.filter { state[queue].isReleased($0) })
    try hold(kept, queue)
    state[queue].ledger.move(released.count, from: .waiting, to: account)
    try Ring(self).forget(kept.subtracting(released), queue, to: account)
    try deleteRows(kept, queue)
    memory.noteDeparture(of: kept, queue, to: account)
  }

  /// Moves rows that are not what was stored to `damaged`, and counts them. They are never sent.
  func quarantine(_ members: IDRuns, _ queue: QueueID, from account: Ledger.Account) throws(SQLiteError) {
    let bytes = try bytes(of: members, queue)
    for id in members.ids {
      let table = state[queue].segments.table(of: id, queue)
      try statement(.rows(.quarantine, table)).run([":id": id, ":time": unixMilliseconds])
    }
    try freeClientIDs(of: members, queue)
    try deleteRows(members, queue)
    state[queue].remove(members.count, bytes: members.isOfRing ? 0 : bytes, from: account, to: .corrupt)
    state.shares[queue.namespace] = nil  // their owners are not known
    memory.noteDeparture(of: members, queue, to: .corrupt)
    touch(queue)
    memory.log.error(
      "stored reports are damaged: they are set aside and not sent",
      [
        "namespace": names.namespaces[queue.namespace]?.text ?? "", "kind": queue.kind.name,
        "rows": String(members.count),
      ])
  }

  func deleteRows(_ members: IDRuns, _ queue: QueueID) throws(SQLiteError) {
    try forEachRun(of: members, queue, .deleteRange) { (delete) throws(SQLiteError) in try delete.run() }
  }

  /// Calls `body` with a statement on a range of ids, bound to each run of `members` and for the table that holds it.
  func forEachRun(
    of members: IDRuns, _ queue: QueueID, _ name: RowStatement,
    _ body: (SQLiteStatement) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    let segments = state[queue].segments
    for (place, run) in segments.pieces(of: members) {
      let ranged = try statement(.rows(name, RowTable(queue, number: segments[place].number)))
      try body(ranged.bind([":first": run.first, ":last": run.last]))
    }
  }

  /// Claims and eviction look at these rows again.
  func release(_ members: IDRuns, _ queue: QueueID) {
    state[queue].release(members)
    state.shares[queue.namespace]?.release(members, queue.kind)
  }

  // MARK: Looking at rows

  /// The sum of `size`.
  func bytes(of members: IDRuns, _ queue: QueueID) throws(SQLiteError) -> Int {
    var sum = 0
    try forEachRun(of: members, queue, .sizeOfRange) { (size) throws(SQLiteError) in
      sum += Int(try size.firstInt() ?? 0)
    }
    return sum
  }

  /// Reads one row. - Returns: nil if it is not there.
  func read<Value>(
    _ row: Int64, _ queue: QueueID, _ body: (SQLiteRow<StoredRow.Column>) -> Value
  ) throws(SQLiteError) -> Value? {
    let read = try statement(.rows(.readRange, state[queue].segments.table(of: row, queue)))
    return try read.bind([":first": row, ":last": row]).first(of: StoredRow.Column.self, body)
  }

  func exists(_ row: Int64, _ queue: QueueID) throws(SQLiteError) -> Bool {
    let segments = state[queue].segments
    if segments.spentRun(of: row) != nil { return false }
    let exists = try statement(.rows(.exists, segments.table(of: row, queue))).bind([":id": row])
    return try exists.hasRow()
  }

  /// Calls `body` with each waiting row of a priority, in their order, until it returns false.
  func walkWaiting(
    _ priority: Priority, _ queue: QueueID, _ body: (RowHead) throws(SQLiteError) -> Bool
  ) throws(SQLiteError) {
    var rows = RowWalk<RowHead.Column>(priority, queue, self)
    defer { rows.reset() }
    while let row = try rows.nextHead(), try body(row) {}
  }

  // MARK: Rows of a ring that may leave

  private static let releasedTogetherMax = 1000

  /// Claims find these rows from now on, or where `devices` is not 0 after `Intents`. - Parameter rule: the trigger's name.
  func letGo(_ members: IDRuns, _ queue: QueueID, by rule: String, devices: Int = 0) throws(SQLiteError) {
    var release = ReleaseRecord(number: state.nextRelease, queue: queue, rule: rule, members: members, devices: devices)
    // Those that come one by one after a trigger fired are of one record.
    if let last = state[queue].releases.last, (last.rule, last.devices) == (rule, devices),
      last.members.count < Self.releasedTogetherMax, let end = last.members.runs.last?.last,
      let first = members.runs.first?.first, end < first
    {
      release = last
      for id in members.ids { release.members.append(id) }
      state[queue].releases.removeLast()
    }
    state[queue].releases.append(release)
    try statement(PacketStatement.writeRelease).run(inserting: release)
  }

  /// Claims find these rows no more.
  func hold(_ members: IDRuns, _ queue: QueueID) throws(SQLiteError) {
    let ids = Set(members.ids)
    for place in state[queue].releases.indices.reversed() {
      var release = state[queue].releases[place]
      release.members = release.members.subtracting(ids)
      if release.members.count == state[queue].releases[place].members.count { continue }
      if release.members.isEmpty {
        state[queue].releases.remove(at: place)
        try statement(PacketStatement.deleteRelease).run([":number": release.number])
      } else {
        state[queue].releases[place] = release
        try statement(PacketStatement.writeRelease).run(inserting: release)
      }
    }
  }
}
