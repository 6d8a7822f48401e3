import PrismBase
import PrismProtocol
import PrismSQLite

/// Reads reports on a connection and a queue of its own, so that no question holds packets up.
actor ReportReader {
  private let executor = DispatchQueueExecutor(label: "prism.collector.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// A page ends behind as many bytes of metas.
  private static let pageBytesMax = 4 * 1_048_576

  private let path: String
  private let vfs: String?
  private var connection: ReportConnection?

  init(path: String, vfs: String?) { (self.path, self.vfs) = (path, vfs) }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  private func close() { connection = nil }

  func report(_ id: Int64) throws(SQLiteError) -> StoredReport? {
    try closing { () throws(SQLiteError) in try found(id) }
  }

  func page(_ filter: ReportFilter) throws(SQLiteError) -> [StoredReport] {
    try closing { () throws(SQLiteError) in try found(filter) }
  }

  /// Closes the file if it can't be read: it may be replaced then.
  private func closing<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    do throws(SQLiteError) { return try body() } catch {
      connection = nil
      throw error
    }
  }

  private func found(_ id: Int64) throws(SQLiteError) -> StoredReport? {
    let opened = try opened()
    let statement = try opened.connection.prepare("SELECT \(ReportColumn.list) FROM reports r WHERE r.id = :id")
    statement.bind(":id", id)
    return try statement.first(of: ReportColumn.self) { (row) throws(SQLiteError) in
      try Self.report(row, opened.names, hasPayload: true, opened.contexts)
    }
  }

  private func found(_ filter: ReportFilter) throws(SQLiteError) -> [StoredReport] {
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

  private static let facts = FactColumns<ReportColumn>(
    time: .receivedTime, stream: .stream, type: .type, meta: .meta, context: .context)

  private func read(
    _ filter: ReportFilter, ids: ClosedRange<Int64>, into page: inout Page
  ) throws(SQLiteError) {
    let opened = try opened()
    opened.names.begin(filter)
    let metas = filter.metas.map { FieldQuestion($0) }
    let omitted = filter.hasPayloads ? [] : [ReportColumn.payload]
    let statement = try opened.connection.prepare(
      """
      SELECT \(ReportColumn.list(withNullFor: omitted)) FROM reports r WHERE \(ReportConnection.conditions(filter, ids))
      ORDER BY r.id \(filter.isNewestFirst ? "DESC" : "ASC")
      """)
    defer { statement.reset() }
    while !page.isFull, let row = try statement.next(of: ReportColumn.self) {
      guard try opened.names.isNamed(row.int64(.stream), row.int64(.type)) else { continue }
      var isWanted = true
      if !metas.isEmpty {
        try opened.withFacts(row, Self.facts) { facts in isWanted = metas.allSatisfy { $0.of(facts) } }
      }
      guard isWanted else { continue }
      let report = try Self.report(row, opened.names, hasPayload: filter.hasPayloads, opened.contexts)
      if let report { page.add(report) }
    }
  }

  /// The blocks that have what is wanted, in their order; nil: any may.
  private func blocks(_ filter: ReportFilter) throws(SQLiteError) -> [Int64]? {
    let opened = try opened()
    return try opened.names.blocks(
      filter, from: filter.after >> PacketSchema.blockBits, to: .max, isNewestFirst: filter.isNewestFirst,
      opened.connection)
  }

  /// - Returns: nil: it has no stream or no type, because it is damaged.
  private static func report(
    _ row: SQLiteRow<ReportColumn>, _ names: NameReader, hasPayload: Bool, _ contexts: ContextReader?
  ) throws(SQLiteError) -> StoredReport? {
    guard let stream = try names.stream(row.int64(.stream)), let type = try names.type(row.int64(.type)) else {
      return nil
    }
    return try StoredReport(checking: row, stream, type: type.type, hasPayload: hasPayload, contexts)
  }

  private func opened() throws(SQLiteError) -> ReportConnection {
    if let connection { return connection }
    let opened = try ReportConnection(
      path: path, vfs: vfs, settings: "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON")
    connection = opened
    return opened
  }
}
