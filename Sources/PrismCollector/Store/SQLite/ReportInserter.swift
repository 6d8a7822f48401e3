import PrismPacket
import PrismSQLite

/// Inserts the reports of a packet, many with one statement: what SQLite does once for each statement costs about as much as
/// four rows.
struct ReportInserter {
  /// Rows of one statement, the largest first.
  private static let sizes = [48, 8, 1]
  /// A report with a larger payload is stored whole: SQLite would read the payload to find the context behind it.
  private static let sharedPayloadBytesMax = 4096
  private static let columnCount = ReportRow.Column.allCases.count

  private let statements: [SQLiteStatement]
  private var types: TypeTable
  private var blocks: BlockIndex

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    var statements: [SQLiteStatement] = []
    for size in Self.sizes {
      statements.append(try connection.prepare(ReportRow.insert(into: "reports", "OR IGNORE", rows: size)))
    }
    self.statements = statements
    (types, blocks) = (try TypeTable(connection), try BlockIndex(connection))
  }

  // MARK: Packets

  /// - Parameter first: the id of the first report.
  /// - Parameter contexts: of the packet's common information; nil: its rows are stored whole.
  mutating func insert(
    _ packet: OpenedPacket, _ head: PacketDatabase.ReportHead, from first: Int64, _ contexts: [Int64?]
  ) throws(SQLiteError) {
    types.forgetLast()
    let beside = BesideTexts(packet, contexts, sharedPayloadBytesMax: Self.sharedPayloadBytesMax)
    // The statements' values are not copied.
    let result = packet.bytes.withUnsafeBytes { bytes in
      beside.bytes.withUnsafeBytes { besideBytes in
        head.packet.withUnsafeBytes { packetID -> Result<Void, SQLiteError> in
          let source = Source(
            packet: packet, head: head, first: first, contexts: contexts, bytes: bytes, packetID: packetID,
            beside: beside, besideBytes: besideBytes)
          do throws(SQLiteError) { return .success(try insert(source)) } catch { return .failure(error) }
        }
      }
    }
    types.forgetLast()
    try result.get()
  }

  private mutating func insert(_ source: Source) throws(SQLiteError) {
    let rows = source.packet.rows
    guard source.packet.payloads.isEmpty else {
      for index in rows.indices { try insertWithPayload(source, index) }
      return
    }
    var next = 0
    for (size, statement) in zip(Self.sizes, statements) {
      while rows.count - next >= size {
        for row in 0..<size {
          try bind(
            source, next + row, to: SQLiteInsert(statement, row: row, columnCount: Self.columnCount), payload: nil)
        }
        try statement.run()
        next += size
      }
    }
  }

  private mutating func insertWithPayload(_ source: Source, _ index: Int) throws(SQLiteError) {
    guard let statement = statements.last else { return }
    let result = source.packet.payloads[index].withUnsafeBytes { payload -> Result<Void, SQLiteError> in
      do throws(SQLiteError) {
        try bind(source, index, to: SQLiteInsert(statement), payload: payload)
        return .success(try statement.run())
      } catch { return .failure(error) }
    }
    try result.get()
  }

  private mutating func bind(
    _ source: Source, _ index: Int, to insert: SQLiteInsert<ReportRow.Column>, payload: UnsafeRawBufferPointer?
  ) throws(SQLiteError) {
    let (row, id) = (source.packet.rows[index], source.first + Int64(index))
    let type = try types.number(of: source.packet.bytes[row.type], source.head.namespace)
    try blocks.note(type: type, stream: source.head.stream, ofNewest: id)
    let (text, context) = source.text(index)
    let reportID = source.part(row.reportID)
    source.head.bind(to: insert, packet: source.packetID)
    insert.bind(.id, id)
    insert.bind(.type, type)
    insert.bind(.createdTime, row.createdTime)
    insert.bind(.reportID, uncopiedText: reportID)
    insert.bind(.meta, uncopiedText: text.own)
    insert.bind(.context, context)
    if let payload { insert.bind(.payload, uncopiedBlob: payload) } else { insert.bindNull(.payload) }
    var sum = ReportSum(
      source.head, id: id, type: type, created: row.createdTime, reportID: reportID, meta: text,
      payloadBytes: payload?.count)
    if let payload { sum.add(payload: payload) }
    insert.bind(.sum, sum.value)
  }

  // MARK: Reports of other databases

  /// A report under the id that it has there. - Returns: false: there is one of this id.
  mutating func insert(
    _ report: StoredReport, _ head: PacketDatabase.ReportHead, _ context: StoredContext?, _ connection: SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    guard let statement = statements.last else { return false }
    let type = try types.number(of: report.type, head.namespace)
    try statement.run(inserting: ReportRow(report: report, head: head, type: type, context: context))
    guard connection.changes == 1 else { return false }
    try blocks.note(type: type, stream: head.stream, of: report.id)
    return true
  }
}

extension ReportInserter {
  /// A packet, with the places of its bytes.
  private struct Source {
    let packet: OpenedPacket
    let head: PacketDatabase.ReportHead
    let first: Int64
    let contexts: [Int64?]
    let bytes: UnsafeRawBufferPointer, packetID: UnsafeRawBufferPointer
    let beside: BesideTexts
    let besideBytes: UnsafeRawBufferPointer

    /// An empty text needs an address too; without one SQLite takes it for NULL.
    func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
      range.isEmpty
        ? UnsafeRawBufferPointer(start: bytes.baseAddress, count: 0) : UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    func text(_ index: Int) -> (ReportText, context: Int64?) {
      let row = packet.rows[index]
      if !beside.wholes.isEmpty, let whole = beside.wholes[index] {
        return (ReportText(own: UnsafeRawBufferPointer(rebasing: besideBytes[whole])), nil)
      }
      guard let common = row.common else { return (ReportText(own: part(row.own)), nil) }
      let shared = UnsafeRawBufferPointer(rebasing: besideBytes[beside.commons[common]])
      return (ReportText(own: part(row.own), common: shared), contexts[common])
    }
  }

  /// Bytes beside those of a packet: common information, and the metas of rows that are stored whole.
  private struct BesideTexts {
    private(set) var bytes: [UInt8] = []
    private(set) var commons: [Range<Int>] = []
    /// By the numbers of rows.
    private(set) var wholes: [Int: Range<Int>] = [:]

    init(_ packet: OpenedPacket, _ contexts: [Int64?], sharedPayloadBytesMax: Int) {
      for common in packet.commons {
        let begin = bytes.count
        bytes += common.information.object
        commons.append(begin..<bytes.count)
      }
      for (index, row) in packet.rows.enumerated() {
        guard let common = row.common else { continue }
        if contexts[common] != nil, packet.payload(index)?.count ?? 0 <= sharedPayloadBytesMax { continue }
        let begin = bytes.count
        packet.append(row, to: &bytes)
        wholes[index] = begin..<bytes.count
      }
    }
  }
}
