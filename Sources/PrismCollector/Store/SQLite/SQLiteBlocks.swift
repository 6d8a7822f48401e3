import PrismPacket
import PrismSQLite

/// The tables `blocks` and `payloads` of `collector.db` on one connection.
final class SQLiteBlocks: BlockSource {
  private enum Column: String, SQLiteColumn {
    case id, last, rows
    case textBytes = "text_bytes"
    case receivedFirst = "received_first"
    case receivedLast = "received_last"
    case createdFirst = "created_first"
    case createdLast = "created_last"
    case types, devices, sum
  }
  private enum BodyColumn: String, SQLiteColumn { case body }
  private enum PayloadColumn: String, SQLiteColumn { case sum, payload }
  private enum TypesColumn: String, SQLiteColumn { case types }

  static let schema = """
    CREATE TABLE blocks (id INTEGER PRIMARY KEY, last INTEGER NOT NULL, rows INTEGER NOT NULL, text_bytes INTEGER NOT NULL,
      received_first INTEGER NOT NULL, received_last INTEGER NOT NULL, created_first INTEGER NOT NULL,
      created_last INTEGER NOT NULL, types TEXT, devices TEXT, sum INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE payloads (report INTEGER PRIMARY KEY, sum INTEGER NOT NULL, payload BLOB NOT NULL);
    """

  let connection: SQLiteConnection
  private let selectUp: SQLiteStatement, selectDown: SQLiteStatement, selectBody: SQLiteStatement
  private let selectPayload: SQLiteStatement

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    self.connection = connection
    let heads = """
      SELECT \(Column.list) FROM blocks WHERE id >= coalesce((SELECT max(id) FROM blocks WHERE id <= :first), 0)
        AND id <= :last AND last >= :first ORDER BY id
      """
    selectUp = try connection.prepare("\(heads) LIMIT :limit")
    selectDown = try connection.prepare("\(heads) DESC LIMIT :limit")
    selectBody = try connection.prepare("SELECT body FROM blocks WHERE id = :id")
    selectPayload = try connection.prepare("SELECT sum, payload FROM payloads WHERE report = :report")
  }

  // MARK: Reading

  func snapshot<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    try connection.execute("BEGIN")
    do throws(SQLiteError) {
      let result = try body()
      try connection.execute("COMMIT")
      return result
    } catch {
      connection.rollBack()
      throw error
    }
  }

  func heads(_ ids: ClosedRange<Int64>, isNewestFirst: Bool, limit: Int) throws(SQLiteError) -> [BlockHead] {
    let select = isNewestFirst ? selectDown : selectUp
    select.bind(":limit", limit)
    select.bind(":first", ids.lowerBound)
    select.bind(":last", ids.upperBound)
    var heads: [BlockHead] = []
    try select.forEachRow(of: Column.self) { (row) throws(SQLiteError) in
      guard let head = Self.head(row) else { throw SQLiteError.corrupt("the head of a block is not what was written") }
      heads.append(head)
    }
    return heads
  }

  private static func head(_ row: SQLiteRow<Column>) -> BlockHead? {
    let (id, last, rows) = (row.int64(.id), row.int64(.last), row.int(.rows))
    let received = (row.int64(.receivedFirst), row.int64(.receivedLast))
    let created = (row.int64(.createdFirst), row.int64(.createdLast))
    guard id > 0, last >= id, rows > 0, received.0 <= received.1, created.0 <= created.1 else { return nil }
    return BlockHead(
      id: id, last: last, rows: rows, textBytes: row.int(.textBytes), received: received.0...received.1,
      created: created.0...created.1, types: row.isNull(.types) ? nil : row.text(.types),
      devices: row.isNull(.devices) ? nil : row.text(.devices), sum: row.int64(.sum))
  }

  func body(of block: Int64) throws(SQLiteError) -> [UInt8]? {
    selectBody.bind(":id", block)
    return try selectBody.first(of: BodyColumn.self) { $0.bytes(.body) }
  }

  func payload(of report: Int64, received: Int64) throws(SQLiteError) -> [UInt8]? {
    selectPayload.bind(":report", report)
    return try selectPayload.first(of: PayloadColumn.self) { row in
      let payload = row.bytes(.payload)
      return Checksum.of(payload) == row.int64(.sum) ? payload : nil
    } ?? nil
  }

  func types() throws(SQLiteError) -> [TypeName] {
    var texts: [String] = []
    let select = "SELECT DISTINCT types FROM blocks WHERE types IS NOT NULL"
    try connection.prepare(select).forEachRow(of: TypesColumn.self) { texts.append($0.text(.types)) }
    return BlockNames.types(texts)
  }

  /// The last id of a report; 0: there is no report.
  func newestID() throws(SQLiteError) -> Int64 {
    try connection.firstInt("SELECT last FROM blocks ORDER BY id DESC LIMIT 1") ?? 0
  }
}

/// Writes them, for the one queue that does.
struct SQLiteBlockWriter {
  private let connection: SQLiteConnection
  private let insertBlock: SQLiteStatement, insertPayload: SQLiteStatement

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    self.connection = connection
    insertBlock = try connection.prepare(
      """
      INSERT INTO blocks VALUES (:id, :last, :rows, :text_bytes, :received_first, :received_last, :created_first,
        :created_last, :types, :devices, :sum, :body)
      """)
    insertPayload = try connection.prepare("INSERT OR IGNORE INTO payloads VALUES (:report, :sum, :payload)")
  }

  func insert(_ head: BlockHead, _ body: [UInt8]) throws(SQLiteError) {
    insertBlock.bind(":id", head.id)
    insertBlock.bind(":last", head.last)
    insertBlock.bind(":rows", head.rows)
    insertBlock.bind(":text_bytes", head.textBytes)
    insertBlock.bind(":received_first", head.received.lowerBound)
    insertBlock.bind(":received_last", head.received.upperBound)
    insertBlock.bind(":created_first", head.created.lowerBound)
    insertBlock.bind(":created_last", head.created.upperBound)
    insertBlock.bind(":types", head.types)
    insertBlock.bind(":devices", head.devices)
    insertBlock.bind(":sum", head.sum)
    insertBlock.bind(":body", body)
    try insertBlock.run()
  }

  /// Payloads lie apart, so that blocks are read without them. An empty one needs no row.
  func insert(payload: [UInt8], of report: Int64) throws(SQLiteError) {
    guard !payload.isEmpty else { return }
    insertPayload.bind(":report", report)
    insertPayload.bind(":sum", Checksum.of(payload))
    insertPayload.bind(":payload", payload)
    try insertPayload.run()
  }

  /// One block in place of those that it was merged from. Within a transaction.
  func replace(_ ids: ClosedRange<Int64>, by head: BlockHead, _ body: [UInt8]) throws(SQLiteError) {
    try connection.execute("DELETE FROM blocks WHERE id BETWEEN \(ids.lowerBound) AND \(ids.upperBound)")
    try insert(head, body)
  }
}

extension Checksum {
  /// Of a whole text.
  static func of(_ bytes: [UInt8]) -> Int64 {
    var sum = CRC32()
    bytes.withUnsafeBytes { sum.add($0) }
    return Int64(sum.value)
  }
}
