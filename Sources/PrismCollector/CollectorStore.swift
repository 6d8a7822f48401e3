import Dispatch
import PrismBase
import PrismProtocol
import PrismStore

/// What came, at rest: a packet's id and its reports are one transaction, so a packet that comes twice is stored once,
/// through `kill -9` too (docs/collector.md).
///
/// Packets that arrive while a commit runs share the next one: one sync of the disk serves them all.
actor CollectorStore {
  enum Outcome: Sendable, Equatable {
    case stored, duplicate
    case failed(CollectorRefusal)
  }

  private static let schema = """
    CREATE TABLE IF NOT EXISTS packets (
      device TEXT, namespace TEXT, kind TEXT, packet TEXT, received_time INTEGER NOT NULL,
      PRIMARY KEY (device, namespace, kind, packet)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS packets_received ON packets (received_time);
    CREATE TABLE IF NOT EXISTS ledgers (
      device TEXT, namespace TEXT, kind TEXT, ledger TEXT NOT NULL, received_time INTEGER NOT NULL,
      PRIMARY KEY (device, namespace, kind)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS reports (
      id INTEGER PRIMARY KEY, device TEXT NOT NULL, namespace TEXT NOT NULL, kind TEXT NOT NULL, type TEXT NOT NULL,
      report_id TEXT NOT NULL, created_time INTEGER, received_time INTEGER NOT NULL, packet TEXT NOT NULL,
      chain_broken INTEGER NOT NULL, meta TEXT NOT NULL, payload BLOB);
    CREATE INDEX IF NOT EXISTS reports_namespace ON reports (namespace, type, id);
    """
  /// Milliseconds.
  private static let idsKept: Int64 = 30 * 86_400_000
  /// Of one commit.
  private static let idsForgottenMax = 1000

  private struct Pending {
    let packet: OpenedPacket
    let chainIsBroken: Bool
    let answer: CheckedContinuation<Outcome, Never>
  }

  private let executor = DispatchQueueExecutor(label: "prism.collector.store")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let lock: StateLock
  private let connection: SQLiteConnection
  private let insertPacket: SQLiteStatement, insertReport: SQLiteStatement, insertLedger: SQLiteStatement
  private let findPacket: SQLiteStatement, findSender: SQLiteStatement
  private let time: any TimeSource
  private let log: Logger
  private var pending: [Pending] = []
  private var prunedAt: Int64 = 0

  /// Takes the folder for this process and opens `collector.db` in it.
  init(folder: String, time: any TimeSource, log: Logger) throws {
    lock = try StateLock(folder: folder)
    connection = try SQLiteConnection(.init(path: folder + "/collector.db"))
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF")
    try connection.execute(Self.schema)
    insertPacket = try connection.prepare("INSERT OR IGNORE INTO packets VALUES (?, ?, ?, ?, ?)")
    insertReport = try connection.prepare("INSERT INTO reports VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    insertLedger = try connection.prepare("REPLACE INTO ledgers VALUES (?, ?, ?, ?, ?)")
    findPacket = try connection.prepare(
      "SELECT 1 FROM packets WHERE device = ? AND namespace = ? AND kind = ? AND packet = ?")
    findSender = try connection.prepare("SELECT 1 FROM packets WHERE device = ? AND namespace = ? AND kind = ? LIMIT 1")
    (self.time, self.log) = (time, log)
  }

  /// Returns after the commit.
  /// - Parameter chainIsBroken: the packet before this one never came; noted with each report.
  func take(_ packet: OpenedPacket, chainIsBroken: Bool) async -> Outcome {
    await withCheckedContinuation { continuation in
      pending.append(Pending(packet: packet, chainIsBroken: chainIsBroken, answer: continuation))
      // Packets that are on their way to this queue by now get in before it.
      if pending.count == 1 { Task { commitPending() } }
    }
  }

  /// Whether a packet of this id was stored; for one that names it as its forerunner.
  func has(_ id: PacketID, of context: PacketContext) -> Bool {
    bind(findPacket, context)
    findPacket.bind(4, id.description)
    return found(findPacket)
  }

  /// Whether this device ever sent a packet of this namespace and kind.
  func knows(_ context: PacketContext) -> Bool {
    bind(findSender, context)
    return found(findSender)
  }

  private func found(_ statement: SQLiteStatement) -> Bool {
    defer { statement.reset() }
    do { return try statement.step() } catch {
      log.fault("collector.read", "the collector's database can't be read", ["cause": error.description])
      return false
    }
  }

  private func bind(_ statement: SQLiteStatement, _ context: PacketContext) {
    statement.bind(1, context.deviceID)
    statement.bind(2, context.namespace.text)
    statement.bind(3, context.kind.rawValue)
  }

  // MARK: Commits

  private func commitPending() {
    let batch = pending
    pending = []
    do {
      let outcomes = try connection.transaction { () throws(SQLiteError) in
        try prune()
        var outcomes: [Outcome] = []
        for entry in batch { outcomes.append(try store(entry)) }
        return outcomes
      }
      for (entry, outcome) in zip(batch, outcomes) { entry.answer.resume(returning: outcome) }
      log.faultEnded("collector.commit", "packets are stored again")
    } catch {
      log.fault("collector.commit", "packets can't be stored", ["cause": error.description], level: .error)
      let refusal = CollectorRefusal(503, "the collector's store failed; try again", retryAfterSeconds: 5)
      for entry in batch { entry.answer.resume(returning: .failed(refusal)) }
    }
  }

  private func store(_ entry: Pending) throws(SQLiteError) -> Outcome {
    let (delivery, now) = (entry.packet.delivery, time.unixMilliseconds)
    bind(insertPacket, delivery.context)
    insertPacket.bind(4, delivery.context.packetID.description)
    insertPacket.bind(5, now)
    try insertPacket.run()
    guard connection.changes == 1 else { return .duplicate }
    for index in entry.packet.rows.indices { try insert(index, entry, now) }
    if let ledger = delivery.ledger {
      bind(insertLedger, delivery.context)
      insertLedger.bind(4, ledger)
      insertLedger.bind(5, now)
      try insertLedger.run()
    }
    return .stored
  }

  private func insert(_ index: Int, _ entry: Pending, _ now: Int64) throws(SQLiteError) {
    let (packet, context, row) = (entry.packet, entry.packet.delivery.context, entry.packet.rows[index])
    bind(insertReport, context)
    insertReport.bind(4, String(decoding: packet.bytes[row.type], as: UTF8.self))
    insertReport.bind(5, String(decoding: packet.bytes[row.reportID], as: UTF8.self))
    if let createdTime = row.createdTime { insertReport.bind(6, createdTime) } else { insertReport.bindNull(6) }
    insertReport.bind(7, now)
    insertReport.bind(8, context.packetID.description)
    insertReport.bind(9, entry.chainIsBroken ? 1 : 0)
    insertReport.bind(10, String(decoding: packet.meta(row), as: UTF8.self))
    insertReport.bind(11, packet.payload(index))
    try insertReport.run()
  }

  /// Forgets packet ids of over 30 days ago: once an hour, a slice a commit until none is left.
  private func prune() throws(SQLiteError) {
    let now = time.unixMilliseconds
    guard now - prunedAt > 3_600_000 else { return }
    try connection.execute(
      """
      DELETE FROM packets WHERE (device, namespace, kind, packet) IN (
        SELECT device, namespace, kind, packet FROM packets WHERE received_time < \(now - Self.idsKept)
        LIMIT \(Self.idsForgottenMax))
      """)
    if connection.changes < Self.idsForgottenMax { prunedAt = now }
  }

  // MARK: What came

  /// A page of reports, oldest first. - Throws: 503 when the database can't be read.
  func page(_ filter: ReportFilter) throws(CollectorRefusal) -> [JSONValue] {
    do throws(SQLiteError) {
      let statement = try connection.prepare(filter.sql)
      for (index, value) in filter.values.enumerated() { statement.bind(Int32(index + 1), value) }
      var reports: [JSONValue] = []
      try statement.forEachRow { reports.append(ReportFilter.report($0)) }
      return reports
    } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }
}
