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
  private var connection: ReportConnection?

  init(path: String, vfs: String?) { (self.path, self.vfs) = (path, vfs) }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  private func close() { connection = nil }

  private func read<Result>(
    asking questions: [ContextQuestion] = [], _ body: (SQLiteConnection) throws(SQLiteError) -> Result
  ) throws(StoreFailure) -> Result {
    do throws(SQLiteError) {
      let opened = try opened()
      connection = opened
      return try opened.asking(questions, body)
    } catch {
      connection = nil
      throw .unavailable("the database can't be read")
    }
  }

  private func opened() throws(SQLiteError) -> ReportConnection {
    if let connection { return connection }
    let settings = "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA cache_size = -8192"
    return try ReportConnection(path: path, vfs: vfs, settings: settings)
  }

  // MARK: Windows

  func windows(_ filter: ReportFilter) throws(StoreFailure) -> [ClosedRange<Int64>] {
    try read { connection throws(SQLiteError) in
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
      return Self.windows(of: try SQLiteBlocks.numbers(filter, connection, from: low, to: high), from: low, to: high)
    }
  }

  func newestID() throws(StoreFailure) -> Int64 {
    try read { (connection) throws(SQLiteError) in try connection.firstInt("SELECT max(id) FROM reports") ?? 0 }
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
    try read { connection throws(SQLiteError) in
      try connection.firstInt("SELECT received_time FROM reports WHERE id >= \(id) ORDER BY id LIMIT 1")
    }
  }

  // MARK: Counting

  private enum CountColumn: String, SQLiteColumn { case time, name, number }

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) throws(StoreFailure) -> [ReportCount] {
    guard filter.ids != nil else { return [] }
    let question = SQLiteGrouping(filter, grouping)
    return try read(asking: question.questions()) { connection throws(SQLiteError) in
      if question.isByNumber {
        var counting = SQLiteCounting()
        try counting.read(try question.words(connection))
        let name = try question.name(connection)
        return try counting.named(bucket: grouping.bucketMilliseconds) { (word) throws(SQLiteError) in
          name?.bind(":word", word)
          return try name?.firstText() ?? ""
        }
      }
      let statement = try question.counts(connection)
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
    return try read(asking: question.questions(of: path)) { connection throws(SQLiteError) in
      let statement = try question.numbers(of: path, limit: limit, connection)
      var numbers: [ReportNumber] = []
      try statement.forEachRow(of: CountColumn.self) { row in
        numbers.append(ReportNumber(time: row.int64(.time), group: row.text(.name), value: row.double(.number)))
      }
      return numbers
    }
  }

  // MARK: Names

  private enum StreamColumn: String, SQLiteColumn {
    case device, namespace, kind, packets
    case received = "received_time"
    case ledger
  }

  func streams(of device: String?, limit: Int) throws(StoreFailure) -> [DeviceStream] {
    try read { connection throws(SQLiteError) in
      let condition = device == nil ? "" : "AND device = :device"
      let statement = try connection.prepare(
        """
        SELECT \(StreamColumn.list) FROM streams WHERE packets > 0 \(condition)
        ORDER BY received_time DESC, device, namespace, kind LIMIT \(limit)
        """)
      if let device { statement.bind(":device", device) }
      var streams: [DeviceStream] = []
      try statement.forEachRow(of: StreamColumn.self) { row in
        streams.append(
          DeviceStream(
            device: row.text(.device), namespace: row.text(.namespace), kind: row.text(.kind),
            packets: row.int(.packets), receivedTime: row.int64(.received),
            ledger: row.isNull(.ledger) ? nil : row.text(.ledger)))
      }
      return streams
    }
  }

  private enum TypeColumn: String, SQLiteColumn { case namespace, type }

  func types(limit: Int) throws(StoreFailure) -> [TypeName] {
    try read { connection throws(SQLiteError) in
      let statement = try connection.prepare("SELECT \(TypeColumn.list) FROM types ORDER BY 1, 2 LIMIT \(limit)")
      var types: [TypeName] = []
      try statement.forEachRow(of: TypeColumn.self) { row in
        types.append(TypeName(namespace: row.text(.namespace), type: row.text(.type)))
      }
      return types
    }
  }
}
