import PrismBase
import PrismProtocol

// What is done while nobody waits: expiry, forgetting, giving pages back, copying the log into the file.
extension ReportStore {
  private static let dayMilliseconds: Int64 = 86_400_000
  /// Pages of 4 KiB that one slice gives back: a few milliseconds.
  private static let vacuumPagesPerSlice = 256

  /// One slice of a few milliseconds. true: there is more to do at once.
  /// - Parameter isIdle: nobody used the store since the last slice. Else no more than this slice of pages is given back:
  ///   that moves the rows at the file's end, and a drain would wait for rows to be moved that it deletes next.
  public func maintain(isIdle: Bool = true) throws(StoreError) -> Bool {
    bringHome()
    _ = refusalNow()
    do { try relock() } catch { board.note { $0.cause = error.message } }
    if try salvageSlice() { return true }
    noteLeftBehind()
    if try countMoreShares() { return true }
    if try sweepContexts() { return true }
    let isMore = try expire()
    try forget()
    let isMoreFree = try reading { (database) throws(SQLiteError) in try giveBackPages(database) }
    if !isMore && !isMoreFree && isCheckpointDue { checkpoint() }
    return isMore || (isMoreFree && isIdle)
  }

  /// Client-given ids and settled packets, 24 h after the delivery.
  private func forget() throws(StoreError) {
    let cutoff = options.time.unixMilliseconds - Self.dayMilliseconds
    do {
      try transaction { (database) throws(SQLiteError) in
        var old: [(namespace: Int, reportID: String, row: Int64)] = []
        let delivered = try database.statement(.deliveredBefore)
        delivered.bind(1, cutoff)
        try delivered.forEachRow { old.append(($0.int(0), $0.text(1), $0.int64(2))) }
        for entry in old where try !isHeld(entry.row, entry.namespace, database) {
          let prune = try database.statement(.pruneClientID)
          prune.bind(1, entry.namespace)
          prune.bind(2, entry.reportID)
          try prune.run()
        }
        let due = options.time.unixMilliseconds - SettledPacket.unwrittenMillisecondsMax
        if let oldest = unwrittenSettled.first, oldest.receipt.unixMilliseconds < due { try writeSettled(database) }
        try forgetSettled(before: cutoff, database)
        try forgetContexts(database)
        try forgetOwnerlessIDs(database)
      }
    } catch {
      throw error.storeError
    }
  }

  /// Once a run, because it may have to look at every id.
  private func forgetOwnerlessIDs(_ database: StoreDatabase) throws(SQLiteError) {
    guard state.hasOwnerlessIDs, !hasLookedForOwnerlessIDs, salvage.files.isEmpty else { return }
    hasLookedForOwnerlessIDs = true
    let find = "SELECT EXISTS (SELECT 1 FROM client_ids WHERE instr(report_id, ':') = 0)"
    guard try database.connection.firstInt(find) == 0 else { return }
    try database.connection.setHasOwnerlessIDs(false)
    state.hasOwnerlessIDs = false
  }

  /// A payload row may be held long after its meta was delivered.
  private func isHeld(_ row: Int64, _ namespace: Int, _ database: StoreDatabase) throws(SQLiteError) -> Bool {
    guard state.namespaces[namespace] != nil else { return false }
    for kind in ReportKind.allCases {
      let exists = try database.statement(.rowExists(QueueID(namespace: namespace, kind: kind)))
      exists.bind(1, row)
      defer { exists.reset() }
      if try exists.step() { return true }
    }
    return false
  }

  /// Packet ids begin with the time they were made at (RFC 9562), so the old ones stand first.
  private func forgetSettled(before cutoff: Int64, _ database: StoreDatabase) throws(SQLiteError) {
    let bound = PacketID(high: UInt64(max(0, cutoff)) << 16, low: 0)
    let prune = try database.statement(.pruneSettled)
    prune.bind(1, bound.bytes)
    prune.bind(2, cutoff)
    try prune.run()
  }

  private func giveBackPages(_ database: StoreDatabase) throws(SQLiteError) -> Bool {
    let free = try database.connection.firstInt("PRAGMA freelist_count") ?? 0
    // A few free pages are used again soon; giving them back would only wear the disk.
    guard free > Self.vacuumPagesPerSlice else { return false }
    try database.connection.execute("PRAGMA incremental_vacuum(\(Self.vacuumPagesPerSlice))")
    return free > 2 * Self.vacuumPagesPerSlice
  }
}
