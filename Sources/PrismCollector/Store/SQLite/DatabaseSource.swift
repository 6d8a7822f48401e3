import PrismProtocol
import PrismSQL
import PrismSQLite

/// A database that was set aside. SQLite reads as much of it as it can: around pages that it can't read, and by the
/// table's index if a table's page is bad.
final class DatabaseSource {
  /// Blocks of one slice.
  private static let sliceMax = 16

  struct Found {
    var head: BlockHead
    var body: [UInt8]
    var block: OpenedBlock
    var payloads: [(report: Int64, bytes: [UInt8])] = []
  }

  struct Slice {
    var blocks: [Found] = []
    /// The last id that was read.
    var cursor: Int64
    /// Reports that can't be read, or whose blocks are damaged.
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

  private let connection: SQLiteConnection
  private(set) var streams: [Int64: KnownStream] = [:]
  private let tables: StoreTables
  private let reader = BlockReader()

  /// - Throws: where no database can be opened there.
  init(path: String, vfs: String? = nil) throws(SQLiteError) {
    connection = try SQLiteConnection(.init(path: path, isReadOnly: true, vfs: vfs))
    tables = StoreTables(SQLiteDriver(connection))
    readStreams()
  }

  /// The highest id of a report; nil: it can't be read.
  var newestReport: Int64? {
    do {
      let newest = try connection.firstInt("SELECT last FROM blocks ORDER BY id DESC LIMIT 1") ?? 0
      return max(newest, try tables.statements.fact("newest_report") ?? 0)
    } catch { return nil }
  }

  /// For how long it was served; 0 where that can't be read.
  var servedSeconds: Int64 { (try? tables.statements.fact(ServiceTime.fact)) ?? 0 }

  /// nil: it has no identity that can be read.
  var store: StoreMark? {
    guard let mark = try? tables.mark(), mark.id > 0 else { return nil }
    return StoreMark(id: mark.id, life: max(0, mark.life))
  }

  // MARK: Streams and packets

  private enum StreamColumn: String, SQLiteColumn {
    case id, device, namespace, kind, packets, lastPacket, ledger, forgottenTime
  }

  private func readStreams() {
    var rows: [Int64: (inout KnownStream) -> Void] = [:]
    var names: [Int64: [StreamID]] = [:]
    func take(_ row: SQLiteRow<StreamColumn>) {
      let name = Self.stream(row.text(.device), row.text(.namespace), row.text(.kind))
      if let name, names[row.int64(.id)]?.contains(name) != true { names[row.int64(.id), default: []].append(name) }
    }
    forEachRow(of: StreamColumn.self, "FROM streams NOT INDEXED", order: "id") { row in
      take(row)
      let (packets, last) = (row.int64(.packets), row.data(.lastPacket))
      let (ledger, forgotten) = (row.string(.ledger), row.integer(.forgottenTime))
      rows[row.int64(.id)] = { stream in
        (stream.packets, stream.lastPacket) = (packets, last)
        (stream.ledger, stream.forgottenTime) = (ledger, forgotten)
      }
    }
    forEachRow(
      of: StreamColumn.self, "FROM streams INDEXED BY streams_name", list: StreamColumn.list(before: .packets),
      order: "device, namespace, kind"
    ) { take($0) }
    for (id, name) in StreamNames.chosen(of: names) {
      var stream = KnownStream(name: name)
      rows[id]?(&stream)
      streams[id] = stream
    }
  }

  private static func stream(_ device: String, _ namespace: String, _ kind: String) -> StreamID? {
    guard let namespace = NamespaceName(namespace), let kind = RowKind(named: kind) else { return nil }
    return StreamID(device: device, namespace: namespace, kind: kind)
  }

  /// Every packet id that can be read, some of them twice.
  func forEachPacket(_ body: (StreamID, PacketID, _ number: Int64, _ day: Int64) -> Void) {
    func take(_ row: SQLiteRow<PacketColumn>, _ number: Int64, _ day: Int64) {
      guard let stream = streams[row.int64(.stream)], let id = PacketID(bytes: row.bytes(.packet)) else { return }
      body(stream.name, id, number, day)
    }
    forEachRow(of: PacketColumn.self, "FROM packets", order: "id") { row in
      take(row, row.int64(.number), row.int64(.day))
    }
    // The index has each id once more: nothing tells that a bit of the other was flipped.
    let newestDay = servedSeconds / 86_400
    forEachRow(
      of: PacketColumn.self, "FROM packets INDEXED BY packets_name", list: PacketColumn.list(before: .number),
      order: "stream, packet"
    ) { row in
      take(row, streams[row.int64(.stream)]?.packets ?? 0, newestDay)
    }
  }

  /// Every record that can be read.
  func forEachRecord(_ body: (SQLiteRow<RecordTables.Column>) -> Void) {
    forEachRow(
      of: RecordTables.Column.self, "FROM records", list: RecordTables.Column.list(before: .reported),
      order: "server_id"
    ) {
      body($0)
    }
  }

  private enum PacketColumn: String, SQLiteColumn { case stream, packet, number, day }

  /// Reads from both ends towards a page that can't be read.
  /// - Parameter list: the columns that are read; nil: all.
  /// - Returns: whether all rows were read.
  @discardableResult
  private func forEachRow<Column: SQLiteColumn>(
    of columns: Column.Type, _ source: String, list: String? = nil, order: String,
    _ body: (SQLiteRow<Column>) -> Void
  ) -> Bool {
    let select = "SELECT \(list ?? Column.list) \(source) ORDER BY "
    do {
      try connection.prepare(select + order).forEachRow(of: columns) { body($0) }
      return true
    } catch {
      let descending = order.split(separator: ",").map { "\($0) DESC" }.joined(separator: ",")
      try? connection.prepare(select + descending).forEachRow(of: columns) { body($0) }
      return false
    }
  }

  // MARK: Reports

  /// The next blocks behind `cursor`: whole ones, each by its checksum.
  func blocks(after cursor: Int64) -> Slice {
    var slice = Slice(cursor: cursor)
    do {
      let heads = try tables.heads(cursor + 1...Int64.max, isNewestFirst: false, limit: Self.sliceMax)
      for head in heads {
        // A damaged tree may lead back, for ever.
        guard head.id > slice.cursor else { throw SQLiteError.corrupt("ids do not rise") }
        if let found = found(head) { slice.blocks.append(found) } else { slice.lost += head.rows }
        slice.cursor = head.last
      }
      slice.isLast = heads.isEmpty
    } catch {
      if slice.cursor == cursor { skip(&slice) }
    }
    return slice
  }

  /// nil if the block is damaged.
  private func found(_ head: BlockHead) -> Found? {
    guard let body = try? tables.body(of: head.id), let opened = reader.opened(head, body) else { return nil }
    var found = Found(head: head, body: body, block: opened)
    for run in opened.block.runs where run.stream.kind.hasPayload {
      for report in run.ids {
        // Damaged ones are left out: their reports say so.
        guard let payload = try? tables.payload(of: report, received: run.received) else { continue }
        found.payloads.append((report, payload))
      }
    }
    return found
  }

  /// Finds the first id behind the cursor from which on blocks can be read.
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
    // Ids are given out without gaps, so behind the last report no report can be lost.
    let end = newestReport.map { min($0, good - 1) } ?? good - 1
    slice.lost += Int(max(0, end - start))
  }

  private func isDamaged(from id: Int64) -> Bool {
    do {
      let found = try tables.heads(id...Int64.max, isNewestFirst: false, limit: 1).first
      return found.map { $0.last < id } ?? false
    } catch { return true }
  }
}

/// Chooses the names of streams in a database that was set aside: one of two, if a table has another than its index.
enum StreamNames {
  /// Leaves out a stream of which both names may be right: its reports would be shown under the name of another device.
  /// - Parameter copies: the copies of each name that are names at all, by the number of the stream.
  static func chosen(of copies: [Int64: [StreamID]]) -> [Int64: StreamID] {
    var chosen = copies.compactMapValues { $0.count == 1 ? $0[0] : nil }
    let (taken, devices) = (Set(chosen.values), Set(chosen.values.map(\.device)))
    let namespaces = Set(chosen.values.map(\.namespace))
    for (id, names) in copies where names.count > 1 {
      // A name is there once.
      let free = names.filter { !taken.contains($0) }
      let hasOneDevice = Set(free.map(\.device)).count == 1
      let hasOneNamespace = Set(free.map(\.namespace)).count == 1
      // Other streams of the device, and of the namespace, have the right one.
      let known = free.filter { name in
        (hasOneDevice || devices.contains(name.device)) && (hasOneNamespace || namespaces.contains(name.namespace))
      }
      chosen[id] = free.count == 1 ? free[0] : known.count == 1 ? known[0] : nil
    }
    return chosen
  }
}
