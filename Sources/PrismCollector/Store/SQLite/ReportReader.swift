import PrismBase
import PrismProtocol
import PrismSQLite

/// Reads reports on a connection and a queue of its own, so that no question holds packets up.
actor ReportReader {
  private let executor = DispatchQueueExecutor(label: "prism.collector.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// A page ends behind as many bytes of metas.
  private static let pageBytesMax = 4 * 1_048_576

  private static func select(_ columns: String) -> String {
    "SELECT \(columns) FROM reports r JOIN streams s ON s.id = r.stream JOIN types t ON t.id = r.type"
  }

  private let path: String
  private let vfs: String?
  private var connection: ReportConnection?

  init(path: String, vfs: String?) { (self.path, self.vfs) = (path, vfs) }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  private func close() { connection = nil }

  func report(_ id: Int64) throws(SQLiteError) -> StoredReport? {
    let opened = try opened()
    let contexts = try opened.contexts()?.contexts
    let list = ReportColumn.list(withNullFor: contexts == nil ? [.context] : [])
    let statement = try opened.connection.prepare("\(Self.select(list)) WHERE r.id = :id")
    statement.bind(":id", id)
    return try statement.first(of: ReportColumn.self) { (row) throws(SQLiteError) in
      try Self.report(row, hasPayload: true, contexts)
    }
  }

  func page(_ filter: ReportFilter) throws(SQLiteError) -> [StoredReport] {
    var page = Page(limit: filter.limit)
    guard let ids = filter.ids else { return [] }
    guard let blocks = try blocks(filter) else {
      try read(filter, ids: ids, into: &page)
      return page.reports
    }
    for block in blocks where !page.isFull {
      let first = block << PacketSchema.blockBits
      let last = first + (1 << PacketSchema.blockBits) - 1
      guard last >= ids.lowerBound, first <= ids.upperBound else { continue }
      try read(filter, ids: max(first, ids.lowerBound)...min(last, ids.upperBound), into: &page)
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
      bytes += report.meta.count + (report.payload?.count ?? 0)
    }
  }

  private func read(
    _ filter: ReportFilter, ids: ClosedRange<Int64>, into page: inout Page
  ) throws(SQLiteError) {
    let opened = try opened()
    let contexts = try opened.contexts()?.contexts
    let filtered = SQLiteConditions(filter, hasContexts: contexts != nil)
    let conditions = ["r.id BETWEEN \(ids.lowerBound) AND \(ids.upperBound)"] + filtered.sql
    let omitted = (filter.hasPayloads ? [] : [ReportColumn.payload]) + (contexts == nil ? [.context] : [])
    try opened.asking(filtered.questions) { (connection) throws(SQLiteError) in
      let statement = try connection.prepare(
        """
        \(Self.select(ReportColumn.list(withNullFor: omitted))) WHERE \(conditions.joined(separator: " AND "))
        ORDER BY r.id \(filter.isNewestFirst ? "DESC" : "ASC") LIMIT \(filter.limit)
        """)
      for value in filtered.values { statement.bind(value.parameter, value.value) }
      defer { statement.reset() }
      while !page.isFull, let row = try statement.next(of: ReportColumn.self) {
        if let report = try Self.report(row, hasPayload: filter.hasPayloads, contexts) { page.add(report) }
      }
    }
  }

  private enum FilterText { case device, namespace, kind, type }

  /// Those of `texts` that the filter names, each with its column and the name of its parameter.
  private static func given(
    _ filter: ReportFilter, _ texts: [FilterText]
  ) -> [(column: String, parameter: StaticString, value: String)] {
    let all: [(String, StaticString, String?)] = texts.map { text in
      switch text {
      case .device: ("device", ":device", filter.device)
      case .namespace: ("namespace", ":namespace", filter.namespace)
      case .kind: ("kind", ":kind", filter.kind)
      case .type: ("type", ":type", filter.type)
      }
    }
    return all.compactMap { column, parameter, value in value.map { (column, parameter, $0) } }
  }

  /// The blocks that have what is wanted, in their order; nil: any may.
  private func blocks(_ filter: ReportFilter) throws(SQLiteError) -> [Int64]? {
    let (source, given): (String, [(column: String, parameter: StaticString, value: String)])
    if filter.device != nil {
      source = "stream_blocks b JOIN streams n ON n.id = b.stream"
      given = Self.given(filter, [.device, .namespace, .kind])
    } else if filter.type != nil || filter.namespace != nil {
      source = "type_blocks b JOIN types n ON n.id = b.type"
      given = Self.given(filter, [.type, .namespace])
    } else {
      return nil
    }
    let names = given.map { "n.\($0.column) = \($0.parameter)" }.joined(separator: " AND ")
    let statement = try opened().connection.prepare(
      "SELECT DISTINCT \(BlockColumn.list) FROM \(source) WHERE \(names) AND b.block >= \(filter.after >> PacketSchema.blockBits) ORDER BY 1 \(filter.isNewestFirst ? "DESC" : "ASC")"
    )
    for text in given { statement.bind(text.parameter, text.value) }
    var blocks: [Int64] = []
    try statement.forEachRow(of: BlockColumn.self) { blocks.append($0.int64(.block)) }
    return blocks
  }

  private enum BlockColumn: String, SQLiteColumn { case block = "b.block" }

  private static func report(
    _ row: SQLiteRow<ReportColumn>, hasPayload: Bool, _ contexts: ContextReader?
  ) throws(SQLiteError) -> StoredReport? {
    guard let namespace = NamespaceName(row.text(.namespace)), let kind = RowKind(named: row.text(.kind)) else {
      return nil
    }
    let stream = StreamID(device: row.text(.device), namespace: namespace, kind: kind)
    return try StoredReport(checking: row, stream, type: row.text(.typeName), hasPayload: hasPayload, contexts)
  }

  private func opened() throws(SQLiteError) -> ReportConnection {
    if let connection { return connection }
    let opened = try ReportConnection(
      path: path, vfs: vfs, settings: "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON")
    connection = opened
    return opened
  }
}
