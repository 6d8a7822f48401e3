import PrismPacket
import PrismSQLite

/// The table `contexts` of `collector.db`, for the one queue that writes it.
struct ContextTable {
  /// Common information below this size is left in its rows: the reference, and its own row, would cost as much.
  static let bytesMin = 64
  /// The limits of those of the day in memory.
  private static let (knownMax, knownBytesMax) = (4096, 2 * 1_048_576)

  private let find: SQLiteStatement, insert: SQLiteStatement
  /// The ids by their texts.
  private var known: [[UInt8]: Int64] = [:]
  private var knownBytes = 0
  /// Contexts of earlier days are not referred to.
  private var firstID = Int64.max

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    find = try connection.prepare(
      "SELECT \(FoundColumn.list) FROM contexts WHERE hash = :hash AND id >= :first ORDER BY id DESC LIMIT 1")
    insert = try connection.prepare("INSERT OR IGNORE INTO contexts VALUES (:id, :hash, :common)")
  }

  private enum FoundColumn: String, SQLiteColumn { case id, common }

  /// Begins a day. - Parameter first: its first report.
  mutating func begin(day first: Int64) {
    (firstID, known, knownBytes) = (first, [:], 0)
  }

  /// The contexts that rows of a packet refer to, by the places of its common information; nil: they have it themselves. A context
  /// is made for two rows and more.
  /// - Parameter report: the id of the packet's first report.
  mutating func ids(of packet: OpenedPacket, from report: Int64) throws(SQLiteError) -> [Int64?] {
    var ids: [Int64?] = []
    for (place, common) in packet.commons.enumerated() {
      var id: Int64?
      if common.information.object.count >= Self.bytesMin {
        id = try self.id(of: common.information)
        if id == nil, common.rowCount > 1 {
          let first = packet.rows.firstIndex { $0.common == place } ?? 0
          id = try add(common.information, for: report + Int64(first))
        }
      }
      ids.append(id)
    }
    return ids
  }

  private mutating func id(of common: CommonInformation) throws(SQLiteError) -> Int64? {
    if let id = known[common.object] { return id }
    find.bind(":hash", common.hash)
    find.bind(":first", firstID)
    let id = try find.first(of: FoundColumn.self) { $0.bytes(.common) == common.object ? $0.int64(.id) : nil }
    if let id { note(id, of: common) }
    return id
  }

  private mutating func add(_ common: CommonInformation, for report: Int64) throws(SQLiteError) -> Int64 {
    try run(insert, report, common.hash, common.object)
    note(report, of: common)
    return report
  }

  private mutating func note(_ id: Int64, of common: CommonInformation) {
    if known.count >= Self.knownMax || knownBytes >= Self.knownBytesMax { (known, knownBytes) = ([:], 0) }
    known[common.object] = id
    knownBytes += common.object.count
  }

  /// Takes over a context of another database under its id. - Returns: false: another one has this id.
  func adopt(_ context: StoredContext, _ connection: SQLiteConnection) throws(SQLiteError) -> Bool {
    guard let hash = try? CommonInformation.hash(of: context.common) else { return false }
    try run(insert, context.id, hash, context.common)
    if connection.changes == 1 { return true }
    let statement = try connection.prepare("SELECT common FROM contexts WHERE id = :id")
    statement.bind(":id", context.id)
    return try statement.firstValue() == .text(context.common)
  }

  private func run(
    _ insert: SQLiteStatement, _ id: Int64, _ hash: Int64, _ common: [UInt8]
  ) throws(SQLiteError) {
    insert.bind(":id", id)
    insert.bind(":hash", hash)
    insert.bind(":common", String(decoding: common, as: UTF8.self))
    try insert.run()
  }
}

/// The common members of reports, as one JSON object.
struct StoredContext: Sendable, Equatable {
  var id: Int64
  var common: [UInt8]
}
