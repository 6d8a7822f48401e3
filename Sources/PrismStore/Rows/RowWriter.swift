import PrismProtocol
import PrismSQLite

/// Writes the rows of one batch: a report costs a handful of bound integers and pointers into the batch's arena.
struct RowWriter: ~Copyable {
  /// The ids by which reports are known again.
  enum IDs {
    /// That of each report, in `client_ids`.
    case each
    /// That of their run, in `KnownRuns`: their own are only stored with their rows.
    case ofRun
  }

  /// How a batch is stored.
  struct Form {
    let namespace: Int
    /// Numbers of the batch's types.
    let types: [Int64]
    /// nil: rows carry the context's members themselves.
    let context: Int64?
    let ids: IDs
    /// false: its reports that are to be kept in memory are refused.
    let hasMemory: Bool
    /// Of the batch's types; nil: its reports are rows of their own.
    let rules: [ReportReduction?]

    /// Bytes of the reports that become no row.
    func bytesInWindows(of batch: ReportBatch) -> Int {
      batch.rows.reduce(0) { rules[$1.type] == nil || batch.isKept($1) ? $0 : $0 + RepeatedRows.bytes(of: $1) }
    }
  }

  let batch: ReportBatch
  private let form: Form
  let transaction: StoreTransaction
  /// Of the report that is being written; kept so that it is allocated once.
  private var idKey: (bytes: [UInt8], isInMemory: Bool) = ([], false)
  private(set) var nextSequence: Int64
  private(set) var leaving: RowTarget
  /// nil: no row of the batch goes to the ring, or to the one in memory.
  private(set) var kept: RowTarget?, keptInMemory: RowTarget?
  var outcome: BatchOutcome
  /// nil: no type of the batch has windows.
  private(set) var reductions: Reductions?
  /// The rows of the batch that filters keep from the tables, and those that count others.
  var filtering: BatchFiltering
  /// The bytes that the quota leaves to this batch.
  var room = Eviction.Room(bytes: .max, userBytes: .max)

  var namespace: Int { form.namespace }

  init(_ batch: ReportBatch, _ form: Form, _ transaction: StoreTransaction) {
    (self.batch, self.form, self.transaction) = (batch, form, transaction)
    leaving = RowTarget(form.namespace, isRing: false, transaction)
    kept = batch.hasKeptTypes(inMemory: false) ? RowTarget(form.namespace, isRing: true, transaction) : nil
    if form.hasMemory, batch.hasKeptTypes(inMemory: true) {
      keptInMemory = RowTarget(form.namespace, isRing: true, inMemory: true, transaction)
    }
    if form.rules.contains(where: { $0 != nil }) { reductions = Reductions(transaction, form.namespace) }
    nextSequence = transaction.memory.state.nextSequence
    filtering = BatchFiltering(firstSequence: nextSequence)
    outcome = BatchOutcome(ids: [], epoch: transaction.memory.epoch.text)
    outcome.ids.reserveCapacity(batch.rows.count)
  }

  /// - Parameter scratch: where a body is joined with its context; kept by the caller so that it is allocated once.
  mutating func writeAll(scratch: inout [UInt8]) throws(SQLiteError) {
    let (rows, arena) = (batch.rows, batch.arena)
    try arena.withUnsafeBufferPointer { (bytes) throws(SQLiteError) in
      for index in rows.indices { try write(rows[index], at: index, UnsafeRawBufferPointer(bytes), &scratch) }
      try flush()
    }
    if !filtering.counted.isEmpty { try writeCounts() }
  }

  /// Counts bytes that were added to a row. - Parameter bytes: may be negative.
  mutating func grow(_ queue: QueueID, of row: RowID, by bytes: Int) {
    let kind = queue.kind
    if RowID.isKept(row.value) {
      if queue.isInMemory { keptInMemory?.grow(kind, by: bytes) } else { kept?.grow(kind, by: bytes) }
      return
    }
    leaving.grow(kind, by: bytes)
    room.bytes -= bytes
    room.userBytes -= bytes
  }

  private mutating func flush() throws(SQLiteError) {
    try leaving.flush()
    try kept?.flush()
    try keptInMemory?.flush()
  }

  private mutating func write(
    _ row: ReportBatch.Row, at index: Int, _ arena: UnsafeRawBufferPointer, _ scratch: inout [UInt8]
  ) throws(SQLiteError) {
    let id = RowID(priority: batch.types[row.type].priority, sequence: nextSequence)
    var repeated: ReportBatch.Repeat?
    if let mark = filtering.mark(of: index, in: batch) {
      guard case .repeatable(let repeatable) = mark else { return leaveOut(id, at: index) }
      repeated = repeatable
    }
    let reportID = row.clientReportID.map { UnsafeRawBufferPointer(rebasing: arena[$0]) }
    let bytes = id.priority == .kept ? 0 : RepeatedRows.bytes(of: row)
    let claims = reportID != nil && form.ids == .each
    var isClaimed = false
    let isInMemory = batch.types[row.type].isInMemory
    let isRefused = isInMemory && !form.hasMemory
    if let reportID, claims {
      setKey(reportID, isInMemory: isInMemory)
      if repeated == nil, !isRefused, room.fits(bytes) { isClaimed = try claimNewID(for: id) }
      if !isClaimed, let known = try knownRow(reportID) {
        outcome.ids.append(known)
        return outcome.exceptions.append((index, .duplicate))
      }
    }
    if isRefused { return refuse(id, at: index, Self.memoryFull) }
    if let rule = form.rules[row.type], let isFirst = reductions?.add(row, batch, rule), id.priority != .kept {
      if claims { try claimID(ofCounted: id, isClaimed: isClaimed) }
      return leaveInWindow(id, at: index, reportID, isFirst: isFirst)
    }
    if let repeated, try countOn(row, at: index, repeated, hasID: claims) { return }
    guard room.fits(bytes) else {
      return refuse(id, at: index, bytes > room.userBytes ? Self.userFull : Self.storeFull)
    }
    room.bytes -= bytes
    room.userBytes -= bytes
    nextSequence += 1
    outcome.ids.append(id)
    if claims, !isClaimed { try claimID(for: id) }
    try insert(row, id: id, reportID: reportID, arena, &scratch)
    if let repeated { beginCounting(row, id, repeated, reportID: reportID) }
  }

  /// By the type's `reduce`. The first report of a window is counted as its row.
  private mutating func leaveInWindow(
    _ id: RowID, at index: Int, _ reportID: UnsafeRawBufferPointer?, isFirst: Bool
  ) {
    nextSequence += 1
    outcome.ids.append(id)
    outcome.exceptions.append((index, .collapsed(reportID: reportID.map { Array($0) })))
    if !isFirst { filtering.counts.collapsed += 1 }
  }

  /// By the type's `sample`.
  private mutating func leaveOut(_ id: RowID, at index: Int) {
    filtering.counts.sampled += 1
    outcome.ids.append(id)
    outcome.exceptions.append((index, .sampledOut))
  }

  private mutating func refuse(_ id: RowID, at index: Int, _ refusal: Refusal) {
    outcome.ids.append(id)
    outcome.exceptions.append((index, .refused(refusal)))
  }

  private static let memoryFull = Refusal(
    .storeFull, "the folder in memory for reports with keep: memory is full or can't be used, the report was not taken",
    retryMilliseconds: 2000)

  private static let storeFull = Refusal(
    .storeFull, "the namespace holds as much as its quota allows, the report was not taken", retryMilliseconds: 10_000)

  private static let userFull = Refusal(
    .storeFull, "this user holds as much as the namespace's maxUserMByte allows, the report was not taken",
    retryMilliseconds: 10_000)

  private mutating func insert(
    _ row: ReportBatch.Row, id: RowID, reportID: UnsafeRawBufferPointer?, _ arena: UnsafeRawBufferPointer,
    _ scratch: inout [UInt8]
  ) throws(SQLiteError) {
    let body = UnsafeRawBufferPointer(rebasing: arena[row.body])
    var stored = StoredRow(
      id: id.value, type: form.types[row.type], createdTime: row.createdTime,
      context: row.isSelfContained ? owner.contextColumn : form.context ?? owner.contextColumn,
      flags: [], size: 0, reportID: reportID, body: body, payload: nil)
    if reportID != nil, form.ids == .each { stored.flags.insert(.clientID) }
    if row.hasOwnCreateTime { stored.flags.insert(.ownCreateTime) }
    if row.isSelfContained || form.context == nil { stored.flags.insert(.selfContained) }
    let payload = row.payload.map { UnsafeRawBufferPointer(rebasing: arena[$0]) }
    let isInMemory = batch.types[row.type].isInMemory
    guard form.context == nil && !row.isSelfContained else {
      return try insert(stored, inMemory: isInMemory, metaBytes: row.metaBytes, payload: payload)
    }
    scratch.removeAll(keepingCapacity: true)
    scratch.append(contentsOf: batch.context.members)
    if !body.isEmpty { scratch.append(UInt8(ascii: ",")) }
    scratch.append(contentsOf: body)
    try scratch.withUnsafeBufferPointer { (bytes) throws(SQLiteError) in
      stored.body = UnsafeRawBufferPointer(bytes)
      try insert(stored, inMemory: isInMemory, metaBytes: row.metaBytes, payload: payload)
      try flush()  // the next row is joined in the same place
    }
  }

  private mutating func insert(
    _ row: StoredRow, inMemory: Bool, metaBytes: Int, payload: UnsafeRawBufferPointer?
  ) throws(SQLiteError) {
    if inMemory {
      try keptInMemory?.insert(row, metaBytes: metaBytes, payload: payload)
    } else if RowID.isKept(row.id) {
      try kept?.insert(row, metaBytes: metaBytes, payload: payload)
    } else {
      try leaving.insert(row, metaBytes: metaBytes, payload: payload)
    }
  }

  // MARK: Ids that clients gave

  private mutating func setKey(_ reportID: UnsafeRawBufferPointer, isInMemory: Bool) {
    idKey.bytes.removeAll(keepingCapacity: true)
    ClientIDKey.append(reportID, owner, to: &idKey.bytes)
    idKey.isInMemory = isInMemory
  }

  private var clientIDs: ClientIDStatement { idKey.isInMemory ? .memory : .disk }

  /// - Returns: the row that has the id of `setKey`.
  private mutating func knownRow(_ reportID: UnsafeRawBufferPointer) throws(SQLiteError) -> RowID? {
    let known = try idKey.bytes.withUnsafeBufferPointer { (key) throws(SQLiteError) in
      try row(ofKey: UnsafeRawBufferPointer(key))
    }
    if known != nil || !transaction.memory.state.clientIDs.hasOwnerless { return known }
    return try row(ofKey: reportID)
  }

  private func row(ofKey key: UnsafeRawBufferPointer) throws(SQLiteError) -> RowID? {
    try transaction.row(ofClientID: key, namespace).map { RowID(value: $0) }
  }

  /// The id that `knownRow` did not find is of a report that was counted on `row`, or in a window: it is known for a day at least.
  /// It stays known as long as the row is held.
  mutating func claimID(ofCounted row: RowID, isClaimed: Bool = false) throws(SQLiteError) {
    if !isClaimed { try claimID(for: row) }
    let queue = QueueID(namespace: namespace, kind: .meta, isInMemory: idKey.isInMemory)
    try idKey.bytes.withUnsafeBufferPointer { (key) throws(SQLiteError) in
      try ClientIDBound(transaction).deliver(UnsafeRawBufferPointer(key), of: owner, queue)
    }
  }

  /// The id that `knownRow` did not find is the row's.
  private func claimID(for id: RowID) throws(SQLiteError) { try claimID(for: id, clientIDs.insert) }

  /// Looks for the id and takes it with one statement: most ids that clients give are new.
  /// - Returns: false if the id is not the row's: `knownRow` says whose it is.
  private func claimNewID(for id: RowID) throws(SQLiteError) -> Bool {
    guard !transaction.memory.state.clientIDs.hasOwnerless, !transaction.state.usesMemory(namespace), !idKey.isInMemory
    else {
      return false
    }
    try claimID(for: id, ClientIDStatement.disk.insertNew)
    return transaction.database.connection.changes == 1
  }

  private func claimID(for id: RowID, _ statement: SQL) throws(SQLiteError) {
    let insert = try transaction.statement(statement)
    insert.bind([":namespace": namespace, ":row": id.value])
    try idKey.bytes.withUnsafeBufferPointer { (key) throws(SQLiteError) in
      insert.bind(":key", uncopiedText: UnsafeRawBufferPointer(key))
      try insert.run()
    }
  }
}

/// The work of filters on one batch (docs/filters.md).
struct BatchFiltering {
  /// Reports that became no row.
  var counts = FilterCounts()
  /// Rows that count more than before this batch.
  var counted: Set<RepeatedRows.Key> = []
  /// Rows from this number on are of this batch.
  let firstSequence: Int64
  private var nextMark = 0

  init(firstSequence: Int64) { self.firstSequence = firstSequence }

  /// The mark of a row. Call it for each row in their order.
  @inline(__always)
  mutating func mark(of row: Int, in batch: ReportBatch) -> ReportBatch.Mark? {
    guard nextMark < batch.marks.count, batch.marks[nextMark].row == row else { return nil }
    nextMark += 1
    return batch.marks[nextMark - 1].mark
  }
}
