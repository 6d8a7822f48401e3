import PrismProtocol
import PrismStore

/// A database that was set aside, read by SQLite as far as that goes: around pages that it can't read, and where a table's
/// page is bad, by the table's index.
final class DatabaseSource {
  /// Reports of one slice.
  private static let sliceMax = 200

  struct Slice {
    var reports: [(report: StoredReport, stream: StreamID, packet: [UInt8])] = []
    var cursor: Int64
    /// Ids that can't be read, or whose reports are damaged.
    var lost = 0
    var isLast = false
  }

  struct KnownStream {
    var name: StreamID
    var packets: Int64 = 0
    var lastPacket: [UInt8]?
    var ledger: String?
    var forgottenTime: Int64?
  }

  let isVersion1: Bool
  private let connection: SQLiteConnection
  private(set) var streams: [Int64: KnownStream] = [:]
  private var types: [Int64: String] = [:]

  /// - Throws: where no database can be opened there.
  init(path: String, vfs: String? = nil) throws(SQLiteError) {
    var options = SQLiteConnection.Options(path: path, isReadOnly: true)
    options.vfs = vfs
    connection = try SQLiteConnection(options)
    isVersion1 = try connection.firstInt("PRAGMA user_version") == 0
    if !isVersion1 {
      readStreams()
      readTypes()
    }
  }

  /// The highest id of a report; nil: it can't be read.
  var newestReport: Int64? {
    do {
      let newest = try connection.firstInt("SELECT max(id) FROM reports") ?? 0
      return isVersion1 ? newest : max(newest, try fact("newest_report"))
    } catch { return nil }
  }

  /// For how long it was served; 0 where that can't be read.
  var servedSeconds: Int64 { isVersion1 ? 0 : (try? fact("served_seconds")) ?? 0 }

  private func fact(_ name: String) throws(SQLiteError) -> Int64 {
    try connection.firstInt("SELECT value FROM facts WHERE name = '\(name)'") ?? 0
  }

  // MARK: Streams and packets

  private func readStreams() {
    let columns = "SELECT id, device, namespace, kind, packets, last_packet, ledger, forgotten_time FROM streams"
    let isWhole = forEachRow(columns, order: "id") { row in
      guard var stream = Self.stream(row, from: 1) else { return }
      stream.packets = row.int64(4)
      stream.lastPacket = row.isNull(5) ? nil : row.bytes(5)
      stream.ledger = row.isNull(6) ? nil : row.text(6)
      stream.forgottenTime = row.isNull(7) ? nil : row.int64(7)
      streams[row.int64(0)] = stream
    }
    guard !isWhole else { return }
    forEachRow(
      "SELECT id, device, namespace, kind FROM streams INDEXED BY streams_name", order: "device, namespace, kind"
    ) { row in
      if streams[row.int64(0)] == nil { streams[row.int64(0)] = Self.stream(row, from: 1) }
    }
  }

  private func readTypes() {
    let isWhole = forEachRow("SELECT id, type FROM types", order: "id") { types[$0.int64(0)] = $0.text(1) }
    guard !isWhole else { return }
    forEachRow("SELECT id, type FROM types INDEXED BY types_name", order: "namespace, type") { row in
      if types[row.int64(0)] == nil { types[row.int64(0)] = row.text(1) }
    }
  }

  private static func stream(_ row: SQLiteStatement, from column: Int32) -> KnownStream? {
    guard let namespace = NamespaceName(row.text(column + 1)), let kind = ReportKind(rawValue: row.text(column + 2))
    else {
      return nil
    }
    return KnownStream(name: StreamID(device: row.text(column), namespace: namespace, kind: kind))
  }

  /// Every packet id that can be read, some of them twice.
  func forEachPacket(_ body: (StreamID, PacketID, _ number: Int64, _ day: Int64) -> Void) {
    if isVersion1 {
      forEachRow("SELECT device, namespace, kind, packet FROM packets", order: "device, namespace, kind, packet") {
        row in
        if let stream = Self.stream(row, from: 0), let id = PacketID(row.text(3)) { body(stream.name, id, 0, 0) }
      }
      return
    }
    func take(_ row: SQLiteStatement, _ number: Int64, _ day: Int64) {
      guard let stream = streams[row.int64(0)], let id = PacketID(bytes: row.bytes(1)) else { return }
      body(stream.name, id, number, day)
    }
    let isWhole = forEachRow("SELECT stream, packet, number, day FROM packets", order: "id") { row in
      take(row, row.int64(2), row.int64(3))
    }
    guard !isWhole else { return }
    let newestDay = servedSeconds / 86_400
    forEachRow("SELECT stream, packet FROM packets INDEXED BY packets_name", order: "stream, packet") { row in
      take(row, streams[row.int64(0)]?.packets ?? 0, newestDay)
    }
  }

  /// Reads from both ends towards a page that can't be read.
  /// - Returns: whether all rows were read.
  @discardableResult
  private func forEachRow(_ sql: String, order: String, _ body: (SQLiteStatement) -> Void) -> Bool {
    do {
      try connection.prepare("\(sql) ORDER BY \(order)").forEachRow { body($0) }
      return true
    } catch {
      let descending = order.split(separator: ",").map { "\($0) DESC" }.joined(separator: ",")
      try? connection.prepare("\(sql) ORDER BY \(descending)").forEachRow { body($0) }
      return false
    }
  }

  // MARK: Reports

  /// The next reports behind `cursor`.
  func reports(after cursor: Int64) -> Slice {
    var slice = Slice(cursor: cursor)
    do {
      let sql =
        isVersion1
        ? """
        SELECT id, device, namespace, kind, type, packet, chain_broken, received_time, created_time, report_id, meta, payload
        FROM reports WHERE id > ? ORDER BY id LIMIT \(Self.sliceMax)
        """
        : """
        SELECT id, stream, packet, type, chain_broken, received_time, created_time, report_id, sum, meta,
          length(payload), payload
        FROM reports WHERE id > ? ORDER BY id LIMIT \(Self.sliceMax)
        """
      let statement = try connection.prepare(sql)
      statement.bind(1, cursor)
      var count = 0
      try statement.forEachRow { row in
        count += 1
        slice.cursor = row.int64(0)
        if let (report, stream, packet) = isVersion1 ? Self.version1(row) : version2(row) {
          slice.reports.append((report, stream, packet))
        } else {
          slice.lost += 1
        }
      }
      slice.isLast = count == 0
    } catch {
      if slice.cursor == cursor { skip(&slice) }
    }
    return slice
  }

  private static func version1(_ row: SQLiteStatement) -> (StoredReport, StreamID, [UInt8])? {
    let meta = row.bytes(10)
    guard let stream = stream(row, from: 1), let packet = PacketID(row.text(5)), (try? MetaFields(meta.span)) != nil
    else {
      return nil
    }
    let payload = row.isNull(11) ? nil : row.bytes(11)
    let report = StoredReport(
      id: row.int64(0), device: stream.name.device, namespace: stream.name.namespace.text,
      kind: stream.name.kind.rawValue, type: row.text(4), reportID: row.text(9),
      createdTime: row.isNull(8) ? nil : row.int64(8), receivedTime: row.int64(7), packetID: packet.description,
      chainIsBroken: row.int(6) != 0, meta: meta, payloadBytes: payload?.count, payload: payload)
    return (report, stream.name, packet.bytes)
  }

  private func version2(_ row: SQLiteStatement) -> (StoredReport, StreamID, [UInt8])? {
    guard let stream = streams[row.int64(1)]?.name, let type = types[row.int64(3)] else { return nil }
    guard let report = StoredReport(checking: row, stream, type: type, hasPayload: true), !report.isDamaged,
      let packet = PacketID(bytes: row.bytes(2))
    else { return nil }
    return (report, stream, packet.bytes)
  }

  /// Finds the first id behind the cursor from which on reports can be read.
  private func skip(_ slice: inout Slice) {
    let start = slice.cursor
    var (bad, good) = (start + 1, start + 2)
    while isDamaged(from: good) {
      guard good - start < 1 << 40 else {
        slice.isLast = true
        return
      }
      (bad, good) = (good, start + (good - start) * 2)
    }
    while good - bad > 1 {
      let middle = bad + (good - bad) / 2
      if isDamaged(from: middle) { bad = middle } else { good = middle }
    }
    slice.cursor = good - 1
    // Ids are given out without gaps, so behind the last report there are none to be lost.
    let end = newestReport.map { min($0, good - 1) } ?? good - 1
    slice.lost += Int(max(0, end - start))
  }

  private func isDamaged(from id: Int64) -> Bool {
    do {
      let statement = try connection.prepare("SELECT id, length(meta) FROM reports WHERE id >= ? ORDER BY id LIMIT 1")
      statement.bind(1, id)
      try statement.forEachRow { _ in }
      return false
    } catch { return true }
  }
}
