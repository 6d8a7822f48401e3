import PrismBase
import PrismProtocol
import PrismSQLite

/// Reads `collector.db` on a connection and a queue of its own: no question holds up packets or outputs.
actor SQLiteReader: ReportQueries {
  private let executor: DispatchQueueExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let path: String
  private let vfs: String?
  private let damage: DamageReports
  private let reader: BlockReader
  /// nil: it is opened when it is used.
  private var blocks: SQLiteBlocks?

  init(path: String, vfs: String? = nil, label: String = "reader", _ damage: DamageReports = DamageReports()) {
    (self.path, self.vfs, self.damage) = (path, vfs, damage)
    executor = DispatchQueueExecutor(label: "prism.collector.\(label)")
    reader = BlockReader(damage.blocks)
  }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  func close() { blocks = nil }

  /// Closes the file if it can't be read: it may be replaced then.
  private func closing<Result>(
    _ body: (SQLiteBlocks, BlockReader) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    do throws(SQLiteError) { return try body(try opened(), reader) } catch {
      blocks = nil
      throw error
    }
  }

  private func opened() throws(SQLiteError) -> SQLiteBlocks {
    if let blocks { return blocks }
    let connection = try SQLiteConnection(.init(path: path, isReadOnly: true, vfs: vfs))
    try connection.execute("PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA cache_size = -4096")
    let opened = try SQLiteBlocks(connection)
    blocks = opened
    return opened
  }

  // MARK: Reports

  func report(_ id: Int64) throws(SQLiteError) -> StoredReport? {
    try closing { (blocks, reader) throws(SQLiteError) in try reader.report(id, of: blocks) }
  }

  func page(_ filter: ReportFilter) throws(SQLiteError) -> [StoredReport] {
    try closing { (blocks, reader) throws(SQLiteError) in try reader.page(filter, of: blocks) }
  }

  /// The next blocks to merge behind an id, and what they become. - Parameter days: the ids at which days begin, ascending.
  func merge(after id: Int64, days: [Int64]) throws(SQLiteError) -> BlockMerge.Result {
    try closing { (blocks, reader) throws(SQLiteError) in
      try reader.merge(after: id, before: .max, day: { head in Int64(days.count { $0 <= head.id }) }, of: blocks)
    }
  }

  // MARK: The page's questions

  private func ask<Result>(
    _ body: (SQLiteBlocks, BlockReader) throws(SQLiteError) -> Result
  ) throws(StoreFailure) -> Result {
    let since = damage.replacements
    do throws(SQLiteError) { return try closing(body) } catch {
      damage.report(error, since: since)
      throw .unavailable("the database can't be read")
    }
  }

  func windows(_ filter: ReportFilter) throws(StoreFailure) -> [ClosedRange<Int64>] {
    try ask { (blocks, reader) throws(SQLiteError) in try reader.windows(filter, of: blocks) }
  }

  func newestID() throws(StoreFailure) -> Int64 {
    try ask { (blocks, _) throws(SQLiteError) in try blocks.newestID() }
  }

  func receivedTime(from id: Int64) throws(StoreFailure) -> Int64? {
    try ask { (blocks, reader) throws(SQLiteError) in try reader.receivedTime(from: id, of: blocks) }
  }

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) throws(StoreFailure) -> [ReportCount] {
    try ask { (blocks, reader) throws(SQLiteError) in try reader.counts(filter, grouping, of: blocks) }
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) throws(StoreFailure) -> [ReportNumber] {
    try ask { (blocks, reader) throws(SQLiteError) in
      try reader.numbers(filter, path: path, grouping, limit: limit, of: blocks)
    }
  }

  func types(limit: Int) throws(StoreFailure) -> [TypeName] {
    try ask { (blocks, _) throws(SQLiteError) in Array(try blocks.types().prefix(limit)) }
  }

  private enum StreamColumn: String, SQLiteColumn {
    case number = "n.id"
    case device = "n.device"
    case namespace = "n.namespace"
    case kind = "n.kind"
    case packets = "s.packets"
    case received = "s.received_time"
    case ledger = "s.ledger"
    case isWhole = "s.device = n.device AND s.namespace = n.namespace AND s.kind = n.kind"
  }

  func streams(of device: String?, limit: Int) throws(StoreFailure) -> [DeviceStream] {
    try ask { (blocks, _) throws(SQLiteError) in
      let condition = device == nil ? "" : "AND n.device = :device"
      let statement = try blocks.connection.prepare(
        """
        SELECT \(StreamColumn.list)
        FROM streams n INDEXED BY streams_name LEFT JOIN streams s NOT INDEXED ON s.id = n.id
        WHERE coalesce(s.packets, 1) > 0 \(condition)
        ORDER BY s.received_time DESC, n.device, n.namespace, n.kind LIMIT \(limit)
        """)
      if let device { statement.bind(":device", device) }
      var streams: [DeviceStream] = []
      try statement.forEachRow(of: StreamColumn.self) { (row) throws(SQLiteError) in
        guard row.bool(.isWhole) else { throw .differ("streams", row.int64(.number)) }
        streams.append(
          DeviceStream(
            device: row.text(.device), namespace: row.text(.namespace), kind: row.text(.kind),
            packets: row.int(.packets), receivedTime: row.int64(.received),
            ledger: row.isNull(.ledger) ? nil : row.text(.ledger)))
      }
      return streams
    }
  }
}
