import PrismBase
import PrismProtocol
import PrismStore

/// Reads reports on a connection and a queue of its own, so that no question holds packets up.
actor ReportReader {
  private let executor = DispatchQueueExecutor(label: "prism.collector.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// A page ends behind as many bytes of metas.
  private static let pageBytesMax = 4 * 1_048_576

  private static func select(_ payload: String) -> String {
    """
    SELECT r.id, r.stream, r.packet, r.type, r.chain_broken, r.received_time, r.created_time, r.report_id, r.sum, r.meta,
      length(r.payload), \(payload), s.device, s.namespace, s.kind, t.type
    FROM reports r JOIN streams s ON s.id = r.stream JOIN types t ON t.id = r.type
    """
  }

  private let path: String
  private let vfs: String?
  private var connection: SQLiteConnection?

  init(path: String, vfs: String?) { (self.path, self.vfs) = (path, vfs) }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  private func close() { connection = nil }

  func report(_ id: Int64) throws(SQLiteError) -> StoredReport? {
    let statement = try opened().prepare("\(Self.select("r.payload")) WHERE r.id = ?")
    statement.bind(1, id)
    var found: StoredReport?
    try statement.forEachRow { found = Self.report($0, hasPayload: true) }
    return found
  }

  func page(_ filter: ReportFilter) throws(SQLiteError) -> [StoredReport] {
    var page = Page(limit: filter.limit)
    guard let blocks = try blocks(filter) else {
      try read(filter, ids: filter.after + 1...Int64.max, into: &page)
      return page.reports
    }
    for block in blocks where !page.isFull {
      let first = block << PacketSchema.blockBits
      let last = first + (1 << PacketSchema.blockBits) - 1
      guard last > filter.after else { continue }
      try read(filter, ids: max(first, filter.after + 1)...last, into: &page)
    }
    return page.reports
  }

  private struct Page {
    let limit: Int
    private(set) var reports: [StoredReport] = []
    private var bytes = 0

    init(limit: Int) { self.limit = limit }
    var isFull: Bool { reports.count >= limit || bytes >= pageBytesMax }

    mutating func add(_ report: StoredReport) {
      reports.append(report)
      bytes += report.meta.count
    }
  }

  private func read(
    _ filter: ReportFilter, ids: ClosedRange<Int64>, into page: inout Page
  ) throws(SQLiteError) {
    var (conditions, values) = (["r.id BETWEEN \(ids.lowerBound) AND \(ids.upperBound)"], [String]())
    let texts = [
      ("s.device", filter.device), ("s.namespace", filter.namespace), ("s.kind", filter.kind), ("t.type", filter.type),
    ]
    for (column, value) in texts {
      guard let value else { continue }
      values.append(value)
      conditions.append("\(column) = ?\(values.count)")
    }
    if let since = filter.since { conditions.append("r.received_time >= \(since)") }
    if let until = filter.until { conditions.append("r.received_time < \(until)") }
    let statement = try opened().prepare(
      "\(Self.select("NULL")) WHERE \(conditions.joined(separator: " AND ")) ORDER BY r.id LIMIT \(filter.limit)")
    for (index, value) in values.enumerated() { statement.bind(Int32(index + 1), value) }
    defer { statement.reset() }
    while !page.isFull, try statement.step() {
      if let report = Self.report(statement, hasPayload: false) { page.add(report) }
    }
  }

  /// The blocks that have what is wanted, in their order; nil: any may.
  private func blocks(_ filter: ReportFilter) throws(SQLiteError) -> [Int64]? {
    let (source, conditions): (String, [(String, String?)])
    if filter.device != nil {
      source = "stream_blocks b JOIN streams n ON n.id = b.stream"
      conditions = [("n.device", filter.device), ("n.namespace", filter.namespace), ("n.kind", filter.kind)]
    } else if filter.type != nil || filter.namespace != nil {
      source = "type_blocks b JOIN types n ON n.id = b.type"
      conditions = [("n.type", filter.type), ("n.namespace", filter.namespace)]
    } else {
      return nil
    }
    let given = conditions.compactMap { column, value in value.map { (column, $0) } }
    let names = given.enumerated().map { "\($1.0) = ?\($0 + 1)" }.joined(separator: " AND ")
    let statement = try opened().prepare(
      "SELECT DISTINCT b.block FROM \(source) WHERE \(names) AND b.block >= \(filter.after >> PacketSchema.blockBits) ORDER BY 1"
    )
    for (index, value) in given.enumerated() { statement.bind(Int32(index + 1), value.1) }
    var blocks: [Int64] = []
    try statement.forEachRow { blocks.append($0.int64(0)) }
    return blocks
  }

  private static func report(_ row: SQLiteStatement, hasPayload: Bool) -> StoredReport? {
    guard let namespace = NamespaceName(row.text(13)), let kind = ReportKind(rawValue: row.text(14)) else { return nil }
    let stream = StreamID(device: row.text(12), namespace: namespace, kind: kind)
    return StoredReport(checking: row, stream, type: row.text(15), hasPayload: hasPayload)
  }

  private func opened() throws(SQLiteError) -> SQLiteConnection {
    if let connection { return connection }
    var options = SQLiteConnection.Options(path: path, isReadOnly: true)
    options.vfs = vfs
    let opened = try SQLiteConnection(options)
    try opened.execute("PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON")
    connection = opened
    return opened
  }
}
