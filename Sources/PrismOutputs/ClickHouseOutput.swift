import PrismBase
import PrismCurl
import PrismProtocol

/// Inserts reports into ClickHouse over HTTP: a table a namespace, which it makes when the server has no such table.
///
/// A page that comes again is known by its token, and each report by its packet and its id: the tables are ReplacingMergeTree. So
/// a report is there once, in a query with FINAL also before the server merged (docs/clickhouse.md).
actor ClickHouseOutput: ReportOutput {
  struct Options: Sendable, Equatable {
    /// Of the server's HTTP port.
    var url: String
    var database = "prism"
    /// The server's own default user where it is missing.
    var user: String?
    /// Its first line is the password. It is read again after each failure.
    var passwordFile: String?
    var timeout: Duration = .seconds(30)
  }

  /// An insert makes a part of each month on the server's disk: few large ones cost it least.
  static let batch = ReportBatching(reportsMax: 10_000, wait: .seconds(1))
  /// Of a token: a server of before 22 knows no such setting.
  private static let tokensSince = 22
  /// Errors of the server that a new table mends: no such table, no such database.
  private static let missing: Set = [60, 81]
  private static let passwordBytesMax = 4096

  private let executor = DispatchQueueExecutor(label: "prism.collector.clickhouse")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  nonisolated var batching: ReportBatching { Self.batch }

  private let options: Options
  private let name: String
  private var server: Server?

  private struct Server {
    let client = CurlClient()
    let headers: [String]
    /// Of the server: 18 and on.
    var version = 0
  }

  init(_ options: Options, name: String) { (self.options, self.name) = (options, name) }

  func close() { server = nil }

  /// Refuses no report: each fits its table, so that a fault is the server's or its operator's.
  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> [RefusedReport] {
    do throws(OutputFailure) {
      let server = if let server { server } else { try connected() }
      self.server = server
      for (namespace, rows) in Dictionary(grouping: reports, by: \.namespace).sorted(by: { $0.key < $1.key }) {
        try insert(rows, into: ClickHouseTable(database: options.database, namespace: namespace), of: server)
      }
    } catch {
      server = nil
      throw error
    }
    return []
  }

  private func connected() throws(OutputFailure) -> Server {
    var headers = options.user.map { ["X-ClickHouse-User: \($0)"] } ?? []
    if let file = options.passwordFile {
      let text: [UInt8]
      do throws(FileError) { text = try SmallFile.read(file, bytesMax: Self.passwordBytesMax) } catch {
        throw OutputFailure("passwordFile: \(error)")
      }
      headers.append("X-ClickHouse-Key: " + String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
    var server = Server(headers: headers)
    let text = try ask(server, "SELECT version()")
    guard let version = Int(text.prefix { $0 != "." }) else {
      throw OutputFailure("\(options.url) is no ClickHouse: it does not tell its version")
    }
    server.version = version
    return server
  }

  private func insert(_ rows: [StoredReport], into table: ClickHouseTable, of server: Server) throws(OutputFailure) {
    guard let first = rows.first, let last = rows.last else { return }
    var settings: [(String, String)] = []
    // Another page with the same first report is another insert, and so is one of another collector with the same ids.
    if server.version >= Self.tokensSince {
      let page = "\(first.id)-\(last.id)-\(rows.count)-\(first.packetID)-\(last.packetID)"
      settings.append(("insert_deduplication_token", "\(name)-\(page)"))
    }
    let body = ClickHouseTable.rows(rows)
    do throws(OutputFailure) { try ask(server, table.insert, settings, body: body) } catch {
      guard let code = error.serverCode, Self.missing.contains(code) else { throw error }
      for (statement, settings) in table.creation(version: server.version) { try ask(server, statement, settings) }
      try ask(server, table.insert, settings, body: body)
    }
  }

  /// - Parameter body: of an insert: its rows.
  @discardableResult
  private func ask(
    _ server: Server, _ statement: String, _ settings: [(String, String)] = [], body: [UInt8]? = nil
  ) throws(OutputFailure) -> String {
    let parameters = settings + (body == nil ? [] : [("query", statement)])
    let query = parameters.map { "\($0.0)=\($0.1.percentEncoded)" }.joined(separator: "&")
    let answer = try server.client.post(
      body ?? Array(statement.utf8), to: "\(options.url)/?\(query)", headers: server.headers, timeout: options.timeout)
    let text = String(decoding: answer.body, as: UTF8.self)
    // An insert has an empty answer, and each has the server's header: anything else is of something between.
    let isServers = answer.headers["x-clickhouse-server-display-name"] != nil
    guard answer.status == 200, isServers, !text.hasPrefix("Code:"), body == nil || text.isEmpty else {
      throw OutputFailure(clickHouse: answer, of: options.url)
    }
    return text
  }
}

extension OutputFailure {
  /// The server's words may have parts of a report: they are left out.
  fileprivate init(clickHouse answer: CurlClient.Answer, of url: String) {
    let text = String(decoding: answer.body.prefix(64), as: UTF8.self)
    let code = text.hasPrefix("Code:") ? Int(text.dropFirst(5).drop { $0 == " " }.prefix { $0.isNumber }) : nil
    guard let code else {
      self.init("\(url) answered \(answer.status) \(answer.mediaType), which is not ClickHouse's")
      return
    }
    let words: [Int: String] = [
      60: "the table is missing", 81: "the database is missing", 159: "a time limit was met",
      192: "the user is unknown", 193: "the password is wrong", 194: "a password is needed",
      241: "a memory limit was met",
      243: "its disk is full", 252: "it has too many parts", 497: "the user lacks a right",
      516: "the user or the password is wrong",
    ]
    self.init("ClickHouse answered with its error \(code)" + (words[code].map { ": \($0)" } ?? ""))
    serverCode = code
  }
}

/// A namespace's table in ClickHouse, and rows for it in the form RowBinary
/// (https://clickhouse.com/docs/interfaces/formats/RowBinary).
struct ClickHouseTable {
  let database: String
  let namespace: String

  /// In the order of `rows`.
  private static let columns: [(name: String, type: String)] = [
    ("id", "Int64"), ("device", "LowCardinality(String)"), ("kind", "LowCardinality(String)"),
    ("type", "LowCardinality(String)"), ("reportId", "String"), ("createdTime", "Nullable(Int64)"),
    ("receivedTime", "Int64"), ("packetId", "String"), ("chainBroken", "UInt8"), ("payload", "Nullable(String)"),
    ("meta", "String"),
  ]

  /// `database` and `namespace` have no sign that ends a name in backquotes.
  private var name: String { "`\(database)`.`\(namespace)`" }

  var insert: String {
    "INSERT INTO \(name) (\(Self.columns.map(\.name).joined(separator: ", "))) FORMAT RowBinary"
  }

  /// Months are of the time at the collector: a device's clock makes no partition.
  /// - Parameter version: of the server.
  /// - Returns: statements with the settings that each needs.
  func creation(version: Int) -> [(statement: String, settings: [(String, String)])] {
    let columns = Self.columns.map { "\($0.name) \($0.type)" }.joined(separator: ", ")
    let create = """
      CREATE TABLE IF NOT EXISTS \(name) (\(columns),
        created DateTime DEFAULT toDateTime(intDiv(ifNull(createdTime, receivedTime), 1000)),
        received DateTime DEFAULT toDateTime(intDiv(receivedTime, 1000)))
      ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(received) ORDER BY (type, created, packetId, id)
      """
    let tokens = " SETTINGS non_replicated_deduplication_window = 1000"
    return [
      ("CREATE DATABASE IF NOT EXISTS `\(database)`", []),
      version >= 20
        ? (create + tokens, []) : (create, [("allow_experimental_low_cardinality_type", "1")]),
    ]
  }

  static func rows(_ reports: [StoredReport]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(reports.reduce(0) { $0 + $1.meta.count + ($1.payload?.count ?? 0) + 160 })
    for report in reports {
      append(report.id, to: &bytes)
      for text in [report.device, report.kind, report.type, report.reportID] { append(text.utf8, to: &bytes) }
      bytes.append(report.createdTime == nil ? 1 : 0)
      if let time = report.createdTime { append(time, to: &bytes) }
      append(report.receivedTime, to: &bytes)
      append(report.packetID.utf8, to: &bytes)
      bytes.append(report.chainIsBroken ? 1 : 0)
      bytes.append(report.payload == nil ? 1 : 0)
      if let payload = report.payload { append(payload, to: &bytes) }
      append(report.meta, to: &bytes)
    }
    return bytes
  }

  private static func append(_ number: Int64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  private static func append(_ text: some Collection<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(varint: UInt64(text.count))
    bytes.append(contentsOf: text)
  }
}
