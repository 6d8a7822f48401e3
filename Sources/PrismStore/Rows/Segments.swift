import PrismSQLite

/// Keeps delivered rows in their table until all of it can be emptied. To delete rows one by one, SQLite writes each of their
/// pages to the log once more; to empty a table it only notes that the pages are free.
struct Segments: PlainOperations {
  /// A segment takes at least an eighth of what its queue holds.
  private static let sharesOfHeld = 8
  /// Packets of a few pages are deleted at once: these pages are usually written anyway.
  private static let packetsPerSegmentMax = 256
  /// Runs of delivered rows of one segment; they are written with each settled packet.
  private static let runsMax = 64
  /// Delivered rows may take these many segments of the file, or as much as the queue's rows that are held.
  private static let spentSegmentsMax = (queue: 4, all: 16)
  /// After it delivered rows are deleted one by one. `settled`, which knows them too, keeps them for longer.
  private static let spentFor: Duration = .seconds(3600)

  let transaction: StoreTransaction

  private var bytesMin: Int { transaction.database.segmentBytes }

  // MARK: New rows

  /// Begins another segment if the current one is large. Called before rows are inserted.
  func makeRoom(_ queue: QueueID) throws(SQLiteError) {
    let segments = state[queue].segments
    guard segments.current.bytes >= max(bytesMin, state[queue].bytes / Self.sharesOfHeld),
      segments.list.count < RowSegments.countMax, transaction.database.keepsDelivered
    else { return }
    try begin(queue)
  }

  func begin(_ queue: QueueID, isRing: Bool = false) throws(SQLiteError) {
    transaction.database.forgetInserts(into: state[queue].segments.currentTable(queue, isRing: isRing))
    let newTables = state[queue].segments.begin(at: state.nextSequence, isRing: isRing)
    transaction.touch(queue)
    guard !newTables.isEmpty else { return }
    let state = self.state
    try QueueTables.add(newTables, of: queue, among: state.names.namespaces, transaction.database.connection) {
      state[$0].segments.tableCount
    }
    if !queue.isInMemory { transaction.memory.hasNewNames = true }
  }

  /// Moves the rows of the smallest two neighbours of the ring into one table. A user who holds little keeps its rows for long,
  /// and they should not hold ever more tables.
  func mergeSmallest(_ queue: QueueID) throws(SQLiteError) {
    let segments = state[queue].segments
    let places = segments.list.indices.filter { segments[$0].isRing && !segments.isCurrent($0) }
    func bytes(_ place: Int) -> Int { segments[place].kept?.bytes ?? 0 }
    let pairs = zip(places, places.dropFirst())
    guard let (place, other) = pairs.min(by: { bytes($0.0) + bytes($0.1) < bytes($1.0) + bytes($1.1) }) else { return }
    let (table, from) = (
      RowTable(queue, number: segments[place].number), RowTable(queue, number: segments[other].number)
    )
    try transaction.prepare(
      "INSERT INTO \(table.name) (\(queue.columns)) SELECT \(queue.columns) FROM \(from.name) ORDER BY id"
    ).run()
    let moved = transaction.database.connection.changes
    try transaction.statement(.rows(.clear, from)).run()
    guard transaction.database.connection.changes == moved else { throw .invalidContent }
    transaction.database.forgetStatements(on: from)
    state[queue].segments.merge(other, into: place)
    transaction.touch(queue)
  }

  // MARK: Delivered rows

  /// Notes the rows of an accepted packet as delivered. - Returns: false: they must be deleted.
  func spend(_ packet: PacketRecord) throws(SQLiteError) -> Bool {
    guard mayStay(packet) else { return false }
    let queue = packet.queue
    var segments = state[queue].segments
    for (place, run) in segments.pieces(of: packet.members) {
      let table = RowTable(queue, number: segments[place].number)
      try segments[place].spent.add(run) { (after, end) throws(SQLiteError) in
        try first(in: table, after: after, end: end) == nil
      }
      segments[place].spentRows += run.count
      segments[place].spentBytes += packet.bytes * run.count / packet.members.count
      segments[place].spentSince = segments[place].spentSince ?? transaction.uptime
      guard segments[place].spent.runs.count <= Self.runsMax else { return false }
    }
    state[queue].segments = segments
    transaction.touch(queue)
    return true
  }

  private func mayStay(_ packet: PacketRecord) -> Bool {
    guard packet.bytes >= bytesMin / Self.packetsPerSegmentMax, transaction.database.keepsDelivered else {
      return false
    }
    let spent = state[packet.queue].segments.spentBytes + packet.bytes
    if spent <= state[packet.queue].bytes { return true }
    return spent <= Self.spentSegmentsMax.queue * bytesMin
      && state.spentBytes + packet.bytes <= Self.spentSegmentsMax.all * bytesMin
  }

  private func first(in table: RowTable, after: Int64, end: Int64) throws(SQLiteError) -> Int64? {
    let first = try transaction.statement(.rows(.first, table)).bind([":after": after, ":end": end])
    return try first.firstInt()
  }

  // MARK: Empty segments

  /// Empties the tables of segments whose rows are all delivered.
  /// - Parameter members: rows that just left: only their segments are looked at; nil: all are.
  func release(_ queue: QueueID, after members: IDRuns? = nil) throws(SQLiteError) {
    let segments = state[queue].segments
    let places = members.map { Set(segments.pieces(of: $0).map(\.place)) } ?? Set(segments.list.indices)
    for place in places.sorted(by: >) {
      let segment = segments[place]
      // An empty current segment stays as it is.
      guard segment.spentRows > 0 || !segments.isCurrent(place), try !hasHeldRow(segment, queue) else { continue }
      try clear(segment, RowTable(queue, number: segment.number))
      state[queue].segments.removeEmpty(at: place)
      transaction.touch(queue)
    }
  }

  private func hasHeldRow(_ segment: RowSegment, _ queue: QueueID) throws(SQLiteError) -> Bool {
    let table = RowTable(queue, number: segment.number)
    var after = Int64.min
    while let id = try first(in: table, after: after, end: .max) {
      guard let run = segment.spent.run(of: id) else { return true }
      // A damaged tree may lead back, for ever.
      guard run.last > after else { throw .invalidContent }
      after = run.last
    }
    return false
  }

  /// - Throws: `invalidContent` if these are not exactly the delivered and kept rows: a damaged tree hides others.
  func clear(_ segment: RowSegment, _ table: RowTable) throws(SQLiteError) {
    let rows = segment.spentRows + (segment.kept?.rows ?? 0)
    if rows > 0 {
      try transaction.statement(.rows(.clear, table)).run()
      guard transaction.database.connection.changes == rows else { throw .invalidContent }
    }
    transaction.database.forgetStatements(on: table)
  }

  // MARK: Delivered rows that stay for long

  /// Whether `sweep` has something to do.
  static func isDue(_ queue: QueueState) -> Bool {
    queue.segments.list.count > 1 || queue.segments.current.spentRows > 0
  }

  /// Empties what can be emptied, and deletes a slice of the delivered rows that stayed for long, or whose space is needed.
  /// - Parameter all: they are deleted however long they stayed. - Returns: whether there is more.
  func sweep(_ queue: QueueID, all: Bool = false) throws(SQLiteError) -> Bool {
    try release(queue)
    let (now, segments) = (transaction.uptime, state[queue].segments)
    for place in segments.list.indices where segments[place].spentRows > 0 {
      let since = segments[place].spentSince ?? now
      state[queue].segments[place].spentSince = since
      guard all || now - since >= Self.spentFor || !transaction.database.keepsDelivered else { continue }
      try deleteSlice(at: place, queue)
      return true
    }
    return false
  }

  private func deleteSlice(at place: Int, _ queue: QueueID) throws(SQLiteError) {
    var segment = state[queue].segments[place]
    guard let run = segment.spent.runs.first else { throw .invalidContent }
    let table = RowTable(queue, number: segment.number)
    let end = try transaction.statement(.rows(.sliceEnd, table)).bind([
      ":first": run.first, ":last": run.last, ":count": Retention.sliceRowsMax,
    ])
    let last = try end.firstInt() ?? run.last
    try transaction.statement(.rows(.deleteRange, table)).run([":first": run.first, ":last": last])
    let deleted = transaction.database.connection.changes
    let bytes = deleted >= segment.spentRows ? segment.spentBytes : segment.spentBytes / segment.spentRows * deleted
    segment.spent.remove(through: last, from: run.first)
    segment.spentRows -= deleted
    segment.spentBytes -= bytes
    // The last rows of a run may have no rows behind them.
    if segment.spentRows == 0 { segment.spent = IDRuns() }
    guard segment.spentRows >= 0, segment.spentRows == 0 || !segment.spent.isEmpty else { throw .invalidContent }
    state[queue].segments[place] = segment
    transaction.touch(queue)
  }
}
