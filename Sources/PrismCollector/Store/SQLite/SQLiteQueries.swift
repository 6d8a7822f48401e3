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
    asking questions: [ContextQuestion] = [], _ filter: ReportFilter = ReportFilter(),
    _ body: (ReportConnection) throws(SQLiteError) -> Result
  ) throws(StoreFailure) -> Result {
    let since = damage.replacements
    do throws(SQLiteError) {
      let opened = try opened()
      return try opened.asking(questions, filter) { (_) throws(SQLiteError) in try body(opened) }
    } catch {
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

  private enum CountColumn: String, SQLiteColumn { case time, name, number }

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) throws(StoreFailure) -> [ReportCount] {
    guard filter.ids != nil else { return [] }
    let question = SQLiteGrouping(filter, grouping)
    return try read(asking: question.questions(), filter) { opened throws(SQLiteError) in
      if question.isByNumber {
        var counting = SQLiteCounting()
        try counting.read(try question.words(opened.connection))
        return try counting.named(bucket: grouping.bucketMilliseconds) { (word) throws(SQLiteError) in
          try question.name(of: word, opened.names) ?? ""
        }
      }
      let statement = try question.counts(opened.connection)
      var counts: [ReportCount] = []
      try statement.forEachRow(of: CountColumn.self) { row in
        counts.append(ReportCount(time: row.int64(.time), group: row.text(.name), count: row.int(.number)))
      }
      return counts
    }
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) throws(StoreFailure) -> [ReportNumber] {
    guard filter.ids != nil else { return [] }
    let question = SQLiteGrouping(filter, grouping)
    return try read(asking: question.questions(of: path), filter) { opened throws(SQLiteError) in
      let statement = try question.numbers(of: path, limit: limit, opened.connection)
      var numbers: [ReportNumber] = []
      try statement.forEachRow(of: CountColumn.self) { (row) throws(SQLiteError) in
        let name = question.isByNumber ? try question.name(of: row.int64(.name), opened.names) : row.text(.name)
        guard let name else { return }
        numbers.append(ReportNumber(time: row.int64(.time), group: name, value: row.double(.number)))
      }
      return numbers
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
