import PrismBase
import PrismSQLite

/// The work of quiet times: rows expire, old deliveries and contexts are forgotten, pages go back to the disk, and the
/// log is copied into the file and cut.
struct Maintenance {
  /// Pages of 4 KiB that one slice gives back: a few milliseconds.
  private static let vacuumPagesPerSlice = 256

  private let file: DatabaseFile
  init(_ file: DatabaseFile) { self.file = file }

  private var memory: StoreMemory { file.memory }

  /// Does one slice of a few milliseconds. - Returns: whether there is more to do at once.
  /// - Parameter isIdle: whether the store was not used since the last slice. If it was used, at most one slice of
  ///   pages is given back: to give pages back moves the rows at the file's end, and a delivery deletes them soon.
  func slice(isIdle: Bool) throws(StoreError) -> Bool {
    file.restore()
    _ = file.refusal()
    do { try file.relock() } catch { file.health.note { $0.cause = error.message } }
    if try file.salvageSlice() { return true }
    file.noteLeftBehind()
    if isIdle { try RetentionPolicies(file).findMemory() }
    if try countMoreShares() { return true }
    if try sweepContexts() { return true }
    // A client that changes its version again and again keeps nothing else waiting.
    let isClearing = try AppUpdates.clearSlice(in: file)
    try endWindows()
    if try reportRings() { return true }
    let isExpiring = try RetentionPolicies(file).expireSlice()
    let isSweeping = try sweepTables()
    let isDeleting = try sweepDelivered()
    try forget()
    let isMoreFree = try file.read { (transaction) throws(SQLiteError) in
      try giveBackPages(transaction.database.connection)
    }
    let isMore = isExpiring || isClearing || isSweeping || isDeleting
    if !isMore && !isMoreFree && file.isCheckpointDue { file.checkpoint(cuts: isIdle) }
    return isMore || (isMoreFree && isIdle)
  }

  /// Makes rows of windows that are over, also while no report comes.
  private func endWindows() throws(StoreError) {
    let now = memory.held.time(file.options.time.uptime)
    for (namespace, windows) in memory.state.counts.windows where windows.contains(where: { $0.value.due <= now }) {
      let rows = try file.write { (transaction) throws(SQLiteError) in
        try Reductions(transaction, namespace).end()
      }
      memory.policies.windowsEnded += rows
    }
  }

  /// - Returns: whether there is more to do at once.
  private func reportRings() throws(StoreError) -> Bool {
    for namespace in memory.state.names.namespaces.keys.sorted() {
      guard try file.read({ Ring($0).isReportDue(namespace) }) else { continue }
      let isMore = try file.write { (transaction) throws(SQLiteError) in try Ring(transaction).report(namespace) }
      if isMore { return true }
    }
    return false
  }

  /// Tables of records that others took the place of.
  private func sweepTables() throws(StoreError) -> Bool {
    guard !memory.state.records.down.garbage.isEmpty else { return false }
    return try file.write { (transaction) throws(SQLiteError) in try DownRows(transaction).sweep() }
  }

  /// Delivered rows that are still in their tables.
  private func sweepDelivered() throws(StoreError) -> Bool {
    var isMore = false
    for queue in memory.state.queueIDs where Segments.isDue(memory.state[queue]) {
      let more = try file.write { (transaction) throws(SQLiteError) in try Segments(transaction).sweep(queue) }
      isMore = isMore || more
    }
    return isMore
  }

  private func countMoreShares() throws(StoreError) -> Bool {
    guard memory.state.shares.contains(where: { !$0.value.isComplete }) else { return false }
    return try file.read { (transaction) throws(SQLiteError) in try ShareCount(transaction).countMore() }
  }

  private func sweepContexts() throws(StoreError) -> Bool {
    guard memory.state.salvage.files.isEmpty else {
      memory.state.contexts.sweeps.current = nil
      return false
    }
    // A sweep is due if many contexts are new since the last look, all namespaces together.
    let countMin = file.options.contextsBeforeSweep
    let isDue = memory.state.nextContext - memory.state.contexts.sweeps.nextContextSeen >= Int64(countMin)
    guard isDue || memory.state.contexts.sweeps.current != nil else { return false }
    return try file.write { (transaction) throws(SQLiteError) in
      try UnusedContexts(transaction).sweep(countMin: countMin)
    }
  }

  private func forget() throws(StoreError) {
    try file.write { (transaction) throws(SQLiteError) in
      let now = transaction.heldTime
      try OldClientIDs(transaction).forget(deliveredBefore: now - Deliveries.keptMilliseconds)
      let deliveries = Deliveries(transaction)
      try ServerTriggers(transaction).forget()
      if memory.deliveries.isDue(heldTime: now) { try deliveries.write() }
      try deliveries.forget(now: now)
      try UnusedContexts(transaction).forget()
      try forgetOwnerlessIDs(transaction)
    }
  }

  /// Once a run.
  private func forgetOwnerlessIDs(_ transaction: StoreTransaction) throws(SQLiteError) {
    let isOver = memory.salvage.hasLookedForOwnerlessIDs || !memory.state.clientIDs.hasOwnerless
    guard !isOver, memory.state.salvage.files.isEmpty else { return }
    memory.salvage.hasLookedForOwnerlessIDs = true
    try OldClientIDs(transaction).forgetOwnerless()
  }

  /// - Returns: whether there is more.
  private func giveBackPages(_ connection: SQLiteConnection) throws(SQLiteError) -> Bool {
    let free = try connection.firstInt("PRAGMA freelist_count") ?? 0
    // A few free pages are used again soon; giving them back would only wear the disk.
    guard free > Self.vacuumPagesPerSlice else { return false }
    try connection.execute("PRAGMA incremental_vacuum(\(Self.vacuumPagesPerSlice))")
    return free > 2 * Self.vacuumPagesPerSlice
  }

  /// Rewrites the file and empties its log: no byte of what was deleted stays in them.
  /// - Throws: `diskFull`: it needs as much space again; `unavailable`.
  func scrub() throws(StoreError) {
    do throws(SQLiteError) {
      let database = try file.opened()
      // Its temporary file is on the disk: it is as large as the database.
      try database.connection.execute("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY")
      if memory.state.memory.isAttached { try database.connection.execute("VACUUM mem") }
      guard try database.connection.firstInt("PRAGMA wal_checkpoint(TRUNCATE)") == 0 else {
        throw SQLiteError(code: 5, message: "a reader holds the log of the database; erase again")
      }
      database.log.empty()
    } catch {
      file.recover(from: error)
      throw error.isDiskFull ? .diskFull : .unavailable(error.description)
    }
  }
}
