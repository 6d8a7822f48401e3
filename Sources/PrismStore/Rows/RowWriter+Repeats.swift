import PrismProtocol
import PrismSQLite

// Equal reports (`collapse`): the first one is a row, the others are counted on it while it waits, in the transaction that
// answers them. A row in a packet never changes: the next equal report begins another one.
extension RowWriter {
  var owner: RowOwner { RowOwner(userID: batch.userID) }

  private func key(_ repeated: ReportBatch.Repeat) -> RepeatedRows.Key {
    RepeatedRows.Key(repeated, owner: owner, namespace: namespace)
  }

  /// - Returns: whether the report was counted on a row; else it has to become one.
  mutating func countOn(
    _ row: ReportBatch.Row, at index: Int, _ repeated: ReportBatch.Repeat, hasID: Bool
  ) throws(SQLiteError) -> Bool {
    let key = key(repeated)
    guard var entry = transaction.memory.state.repeats[key] else { return false }
    guard entry.isInMemory == batch.types[row.type].isInMemory, try mayCount(entry, key, repeated) else {
      transaction.memory.state.repeats[key] = nil
      return false
    }
    entry.count(createdTime: row.createdTime)
    transaction.memory.state.repeats[key] = entry
    filtering.counted.insert(key)
    filtering.counts.collapsed += 1
    outcome.ids.append(entry.row)
    outcome.exceptions.append((index, .collapsed(reportID: entry.reportID)))
    if hasID { try claimID(ofCounted: entry.row) }
    return true
  }

  /// The report became a row: equal ones are counted on it.
  mutating func beginCounting(
    _ row: ReportBatch.Row, _ id: RowID, _ repeated: ReportBatch.Repeat, reportID: UnsafeRawBufferPointer?
  ) {
    let key = key(repeated)
    filtering.counted.remove(key)
    transaction.memory.state.repeats[key] = RepeatedRows.Entry(
      id, repeated, createdTime: row.createdTime, reportID: reportID.map { Array($0) }, hasPayload: row.payload != nil,
      isInMemory: batch.types[row.type].isInMemory)
  }

  private func queues(of entry: RepeatedRows.Entry) -> [QueueID] {
    let kinds: [RowKind] = entry.hasPayload ? [.meta, .payload] : [.meta]
    return kinds.map { QueueID(namespace: namespace, kind: $0, isInMemory: entry.isInMemory) }
  }

  private func mayCount(
    _ entry: RepeatedRows.Entry, _ key: RepeatedRows.Key, _ repeated: ReportBatch.Repeat
  ) throws(SQLiteError) -> Bool {
    guard entry.window.contains(repeated.arrivedTime), room.fits(2 * ReportBatch.Repeat.membersBytesMax) else {
      return false
    }
    if filtering.counted.contains(key) { return true }
    return try isWaiting(entry)
  }

  /// Whether no packet has the row, and it is what was stored.
  private func isWaiting(_ entry: RepeatedRows.Entry) throws(SQLiteError) -> Bool {
    if entry.row.sequence >= filtering.firstSequence { return true }  // of this batch
    for queue in queues(of: entry) {
      guard transaction.state[queue].leftRun(of: entry.row.value) == nil else { return false }
      let isWhole = try transaction.read(entry.row.value, queue) {
        StoredRow.isWhole(StoredRow($0, hasPayload: queue.kind.hasPayload), $0)
      }
      guard isWhole == true else { return false }
    }
    return true
  }

  /// Writes the counts of this batch into their rows.
  mutating func writeCounts() throws(SQLiteError) {
    for key in filtering.counted {
      guard var entry = transaction.memory.state.repeats[key] else { continue }
      let members = entry.members
      var bytes = 0
      for queue in queues(of: entry) { bytes = try write(members, into: entry, queue) }
      entry.storedBytes = bytes
      transaction.memory.state.repeats[key] = entry
    }
  }

  /// - Returns: the bytes that counting has added to the body in all.
  private mutating func write(
    _ members: [UInt8], into entry: RepeatedRows.Entry, _ queue: QueueID
  ) throws(SQLiteError) -> Int {
    let changed = try transaction.read(entry.row.value, queue) { row in
      var stored = StoredRow(row, hasPayload: queue.kind.hasPayload)
      var body = Array(stored.body.dropLast(entry.storedBytes))
      let before = body.count
      if !body.isEmpty { body.append(UInt8(ascii: ",")) }
      body += members
      let added = body.count - before
      stored.size += Int64(added - entry.storedBytes)
      let checksum = body.withUnsafeBytes { bytes in
        stored.body = bytes
        return stored.checksum
      }
      return (body: body, size: stored.size, checksum: checksum, added: added)
    }
    guard let changed else { throw .invalidContent }
    let table = transaction.state[queue].segments.table(of: entry.row.value, queue)
    try transaction.statement(.rows(.changeBody, table)).run([
      ":body": changed.body, ":size": changed.size, ":checksum": changed.checksum, ":id": entry.row.value,
    ])
    grow(queue, of: entry.row, by: changed.added - entry.storedBytes)
    return changed.added
  }
}
