import PrismBase
import PrismProtocol
import PrismSQLite

/// Answers the page on a connection and a queue of its own: it holds up neither packets nor outputs.
actor SQLiteQueries: ReportQueries {
  private let executor = DispatchQueueExecutor(label: "prism.collector.queries")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Blocks of one window: 65,536 ids.
  private static let windowBlocks: Int64 = 16

  private let path: String
  private let vfs: String?
  private let damage: DamageReports
  private var connection: ReportConnection?

  init(path: String, vfs: String?, _ damage: DamageReports) {
    (self.path, self.vfs, self.damage) = (path, vfs, damage)
  }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  private func close() { connection = nil }

  private func read<Result>(
    _ body: (ReportConnection) throws(SQLiteError) -> Result
  ) throws(StoreFailure) -> Result {
    let since = damage.replacements
    do throws(SQLiteError) { return try body(try opened()) } catch {
      connection = nil
      damage.report(error, since: since)
      throw .unavailable("the database can't be read")
    }
  }

  private func opened() throws(SQLiteError) -> ReportConnection {
    if let connection { return connection }
    let settings = "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA cache_size = -8192"
    let opened = try ReportConnection(path: path, vfs: vfs, settings: settings)
    connection = opened
    return opened
  }

  // MARK: Windows

  func windows(_ filter: ReportFilter) throws(StoreFailure) -> [ClosedRange<Int64>] {
    try read { opened throws(SQLiteError) in
      let connection = opened.connection
      guard let wanted = filter.ids, let oldest = try connection.firstInt("SELECT min(id) FROM reports"),
        let newest = try connection.firstInt("SELECT max(id) FROM reports")
      else { return [] }
      let first = try filter.since.map { (time) throws(SQLiteError) in
        try Self.firstID(from: time, connection, oldest, newest)
      }
      let end = try filter.until.map { (time) throws(SQLiteError) in
        try Self.firstID(from: time, connection, oldest, newest)
      }
      let low = max(wanted.lowerBound, oldest, first ?? 0)
      let high = min(wanted.upperBound, newest, (end ?? .max) - 1)
      guard low <= high else { return [] }
      let bits = PacketSchema.blockBits
      let blocks = try opened.names.blocks(
        filter, from: low >> bits, to: high >> bits, isNewestFirst: true, connection)
      return Self.windows(of: blocks, from: low, to: high)
    }
  }

  func newestID() throws(StoreFailure) -> Int64 {
    try read { (opened) throws(SQLiteError) in try opened.connection.firstInt("SELECT max(id) FROM reports") ?? 0 }
  }

  /// The first report that was received at a time or later: reports lie in the order in which they came.
  private static func firstID(
    from time: Int64, _ connection: SQLiteConnection, _ oldest: Int64, _ newest: Int64
  ) throws(SQLiteError) -> Int64 {
    let statement = try connection.prepare("SELECT received_time FROM reports WHERE id >= :id ORDER BY id LIMIT 1")
    var (low, high) = (oldest, newest + 1)
    while low < high {
      let middle = low + (high - low) / 2
      statement.bind(":id", middle)
      if let found = try statement.firstInt(), found < time { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// - Parameter blocks: descending; nil: any may have what is wanted.
  private static func windows(of blocks: [Int64]?, from low: Int64, to high: Int64) -> [ClosedRange<Int64>] {
    let bits = PacketSchema.blockBits
    let numbers = blocks ?? Array(((low >> bits)...(high >> bits)).reversed())
    var windows: [ClosedRange<Int64>] = []
    var open: (first: Int64, last: Int64)?
    func close() {
      guard let open else { return }
      windows.append(max(low, open.first << bits)...min(high, (open.last + 1) << bits - 1))
    }
    for number in numbers {
      if let current = open, number == current.first - 1, current.last - number < windowBlocks {
        open = (number, current.last)
      } else {
        close()
        open = (number, number)
      }
    }
    close()
    return windows
  }

  func receivedTime(from id: Int64) throws(StoreFailure) -> Int64? {
    try read { opened throws(SQLiteError) in
      try opened.connection.firstInt("SELECT received_time FROM reports WHERE id >= \(id) ORDER BY id LIMIT 1")
    }
  }

  // MARK: Counting

  private enum FactColumn: String, SQLiteColumn {
    case time = "r.received_time"
    case stream = "r.stream"
    case type = "r.type"
    case meta = "r.meta"
    case context = "r.context"
  }

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) throws(StoreFailure) -> [ReportCount] {
    let tally = ReportTally(filter, grouping)
    return try read { opened throws(SQLiteError) in
      try Self.fill(tally, filter, opened)
      return try tally.counts(opened.names.stream, opened.names.type)
    }
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) throws(StoreFailure) -> [ReportNumber] {
    let tally = ReportTally(filter, grouping, path: path, limit: limit)
    return try read { opened throws(SQLiteError) in
      try Self.fill(tally, filter, opened)
      return try tally.numbers(opened.names.stream, opened.names.type)
    }
  }

  /// The facts of reports, as SQL.
  static func question(_ filter: ReportFilter, _ ids: ClosedRange<Int64>, readsMetas: Bool) -> String {
    let columns = FactColumn.list(withNullFor: readsMetas ? [] : [.meta, .context])
    return "SELECT \(columns) FROM reports r WHERE \(ReportConnection.conditions(filter, ids))"
  }

  private static func fill(
    _ tally: ReportTally, _ filter: ReportFilter, _ opened: ReportConnection
  ) throws(SQLiteError) {
    guard let ids = filter.ids else { return }
    opened.names.begin(filter)
    let columns = FactColumns<FactColumn>(
      time: .time, stream: .stream, type: .type, meta: tally.readsMetas ? .meta : nil,
      context: tally.readsMetas ? .context : nil)
    let statement = try opened.connection.prepare(Self.question(filter, ids, readsMetas: tally.readsMetas))
    defer { statement.reset() }
    while !tally.isFull, let row = try statement.next(of: FactColumn.self) {
      guard try opened.names.isNamed(row.int64(.stream), row.int64(.type)) else { continue }
      try opened.withFacts(row, columns) { tally.add($0) }
    }
  }

  // MARK: Names

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
    try read { opened throws(SQLiteError) in
      let condition = device == nil ? "" : "AND n.device = :device"
      let statement = try opened.connection.prepare(
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

  private enum TypeColumn: String, SQLiteColumn {
    case number = "n.id"
    case namespace = "n.namespace"
    case type = "n.type"
    case isWhole = "t.namespace = n.namespace AND t.type = n.type"
  }

  func types(limit: Int) throws(StoreFailure) -> [TypeName] {
    try read { opened throws(SQLiteError) in
      let statement = try opened.connection.prepare(
        """
        SELECT \(TypeColumn.list) FROM types n INDEXED BY types_name LEFT JOIN types t NOT INDEXED ON t.id = n.id
        ORDER BY n.namespace, n.type LIMIT \(limit)
        """)
      var types: [TypeName] = []
      try statement.forEachRow(of: TypeColumn.self) { (row) throws(SQLiteError) in
        guard row.bool(.isWhole) else { throw .differ("types", row.int64(.number)) }
        types.append(TypeName(namespace: row.text(.namespace), type: row.text(.type)))
      }
      return types
    }
  }
}
