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
      ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(received) ORDER BY (type, created, id)
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
    var count = UInt64(text.count)
    while count >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: count) | 0x80)
      count >>= 7
    }
    bytes.append(UInt8(count))
    bytes.append(contentsOf: text)
  }
}
