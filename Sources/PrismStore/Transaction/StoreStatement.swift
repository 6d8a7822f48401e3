import PrismProtocol
import PrismSQLite

/// A statement that the store keeps prepared, known by its place in memory: to compare texts would take longer.
final class SQL: Hashable, Sendable {
  static let (begin, commit) = (SQL("BEGIN IMMEDIATE"), SQL("COMMIT"))

  let text: String

  init(_ text: String) { self.text = text }

  static func == (a: SQL, b: SQL) -> Bool { a === b }
  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Every statement that the store keeps prepared on the tables of rows.
enum StoreStatement: Hashable {
  /// Inserts this number of rows at once.
  case insertRows(Int, RowTable)
  case rows(RowStatement, RowTable)

  var sql: String {
    switch self {
    // To let the statement fail alone, as is the default, SQLite would keep a copy of every page that it changes; but a
    // commit fails as a whole.
    case .insertRows(let count, let table):
      StoredRow.insert(into: table.name, "OR FAIL", rows: count, columns: table.queue.columns)
    case .rows(let statement, let table): statement.sql(table)
    }
  }
}

extension QueueID {
  /// On the ids of its rows.
  var ids: ClientIDStatement { isInMemory ? .memory : .disk }
  /// Those of `StoredRow` that the table has.
  var columns: String { kind.hasPayload ? StoredRow.Column.list : StoredRow.Column.list(before: .payload) }
  fileprivate var payloadColumn: String { kind.hasPayload ? "payload" : "NULL" }
}

enum RowStatement {
  case walk, walkBack, walkHeads, first, exists
  /// Without a condition: SQLite frees the table's pages without writing them.
  case clear
  /// Of a run of neighbouring ids.
  case readRange, headsInRange, clientIDsInRange, sizeOfRange, typesOfRange, deleteRange, deleteOfContexts, sliceEnd
  case largePayloads
  case quarantine, salvage
  case changeBody

  /// The column that `clientIDsInRange` reads.
  enum ClientIDColumn: String, SQLiteColumn { case id, reportID, context }

  /// Those of `typesOfRange`.
  enum TypeColumn: String, SQLiteColumn { case type, context, rows, size }

  func sql(_ rowTable: RowTable) -> String {
    let (table, queue, heads) = (rowTable.name, rowTable.queue, RowHead.Column.list)
    return switch self {
    case .walk: "SELECT \(queue.columns) FROM \(table) WHERE id > :after AND id < :end ORDER BY id"
    case .walkBack: "SELECT \(queue.columns) FROM \(table) WHERE id < :end ORDER BY id DESC"
    case .walkHeads: "SELECT \(heads) FROM \(table) WHERE id > :after AND id < :end ORDER BY id"
    case .first: "SELECT id FROM \(table) WHERE id > :after AND id < :end ORDER BY id LIMIT 1"
    case .clear: "DELETE FROM \(table)"
    case .sliceEnd:
      "SELECT max(id) FROM (SELECT id FROM \(table) WHERE id BETWEEN :first AND :last ORDER BY id LIMIT :count)"
    case .exists: "SELECT 1 FROM \(table) WHERE id = :id"
    case .readRange: "SELECT \(queue.columns) FROM \(table) WHERE id BETWEEN :first AND :last ORDER BY id"
    case .headsInRange: "SELECT \(heads) FROM \(table) WHERE id BETWEEN :first AND :last"
    case .clientIDsInRange:
      """
      SELECT \(ClientIDColumn.list) FROM \(table)
      WHERE id BETWEEN :first AND :last AND flags & \(RowFlags.clientID.rawValue)
      """
    case .sizeOfRange: "SELECT total(size) FROM \(table) WHERE id BETWEEN :first AND :last"
    case .typesOfRange:
      """
      SELECT type, context, count(*) AS rows, total(size) AS size FROM \(table)
      WHERE id BETWEEN :first AND :last GROUP BY type, context
      """
    case .deleteRange: "DELETE FROM \(table) WHERE id BETWEEN :first AND :last"
    case .deleteOfContexts:
      """
      DELETE FROM \(table)
      WHERE id BETWEEN :first AND :last AND context IN (SELECT value FROM json_each(:contexts))
      """
    case .largePayloads: "SELECT \(heads) FROM \(table) WHERE length(payload) > :max ORDER BY id"
    case .quarantine:
      """
      INSERT INTO damaged SELECT NULL, \(queue.namespace), \(queue.kind.number), :time,
      \(StoredRow.Column.list(before: .payload)), \(queue.payloadColumn) FROM \(table) WHERE id = :id
      """
    case .changeBody: "UPDATE \(table) SET body = :body, size = :size, checksum = :checksum WHERE id = :id"
    case .salvage: StoredRow.insert(into: table, "OR IGNORE", columns: queue.columns)
    }
  }
}

/// Statements on packets in flight and delivered, and on the ledger.
enum PacketStatement {
  static let insert = SQL(PacketRecord.insert(into: "packets"))
  static let update = SQL("UPDATE packets SET bytes = :bytes, members = :members, checksum = :checksum WHERE id = :id")
  static let delete = SQL("DELETE FROM packets WHERE id = :id")
  static let shift = SQL(
    """
    UPDATE packets SET position = position + 1
    WHERE namespace = :namespace AND kind = :kind AND position > :position
    """)
  static let insertDelivery = SQL(DeliveryRecord.insert(into: "settled", "OR REPLACE"))
  static let deliveriesAfter = SQL(
    "SELECT \(DeliveryRecord.Column.list) FROM settled WHERE id > :after ORDER BY id LIMIT 1000")
  static let deleteDelivery = SQL("DELETE FROM settled WHERE id = :id")
  static let insertDead = SQL(DeadLetterRecord.insert(into: "dead"))
  static let writeLedger = SQL(LedgerRecord.insert(into: "ledger", "OR REPLACE"))
  static let writeLedgerInMemory = SQL(LedgerRecord.insert(into: "mem.ledger", "OR REPLACE"))
  static let writeRelease = SQL(ReleaseRecord.insert(into: "released", "OR REPLACE"))
  static let deleteRelease = SQL("DELETE FROM released WHERE number = :number")
}

/// Statements on the report ids that clients gave: of rows on the disk, or of those in memory.
struct ClientIDStatement {
  static let (disk, memory) = (ClientIDStatement("client_ids"), ClientIDStatement("mem.client_ids"))
  private static let (all, isKey) = (ClientIDRecord.Column.list, "namespace = :namespace AND report_id = :key")

  /// Of rows on the disk, then of those in memory.
  static func all(inMemory: Bool) -> [ClientIDStatement] { inMemory ? [.disk, .memory] : [.disk] }

  let table: String
  let find: SQL, holders: SQL, deliveredBefore: SQL, oldest: SQL, insert: SQL, insertNew: SQL, deliver: SQL
  let deliverAgain: SQL, delete: SQL, prune: SQL

  private init(_ table: String) {
    self.table = table
    let (all, isKey) = (Self.all, Self.isKey)
    find = SQL("SELECT row FROM \(table) WHERE \(isKey)")
    holders = SQL(
      """
      SELECT \(all) FROM \(table) WHERE \(isKey) UNION ALL SELECT \(all) FROM \(table)
      WHERE namespace = :namespace AND report_id >= :key || ':' AND report_id < :key || ';'
      """)
    deliveredBefore = SQL(
      "SELECT \(all) FROM \(table) WHERE delivered_time < :cutoff ORDER BY delivered_time LIMIT 1000")
    insert = SQL("INSERT INTO \(table) (namespace, report_id, row) VALUES (:namespace, :key, :row)")
    insertNew = SQL("INSERT OR IGNORE INTO \(table) (namespace, report_id, row) VALUES (:namespace, :key, :row)")
    // In the order of its index.
    oldest = SQL(
      """
      SELECT \(all) FROM \(table) WHERE delivered_time >= :since AND +namespace = :namespace AND report_id GLOB :user
      ORDER BY delivered_time LIMIT :limit
      """)
    deliver = SQL("UPDATE \(table) SET delivered_time = :time WHERE \(isKey) AND delivered_time IS NULL")
    deliverAgain = SQL("UPDATE \(table) SET delivered_time = :time WHERE \(isKey)")
    delete = SQL("DELETE FROM \(table) WHERE \(isKey) AND row = :row AND delivered_time IS NULL")
    prune = SQL("DELETE FROM \(table) WHERE \(isKey)")
  }

  static let runs = SQL(
    """
    SELECT \(all) FROM client_ids
    WHERE namespace = :namespace AND report_id >= :prefix || '0' AND report_id < :prefix || ':' AND report_id GLOB '*/*'
    """)
  static let insertRun = SQL(
    """
    INSERT INTO client_ids (namespace, report_id, row, delivered_time) VALUES (:namespace, :key, :row, :time)
    """)
}

/// Statements on types, contexts and notes.
enum NameStatement {
  static let insertType = SQL(NameRecord.insert(into: NameRecord.Table.types.rawValue))
  static let insertContext = SQL(ContextRecord.insert(into: "contexts"))
  static let readContext = SQL("SELECT \(ContextRecord.Column.list) FROM contexts WHERE id = :id")
  static let oldContexts = SQL(
    "SELECT \(ContextRecord.Column.list(before: .checksum)) FROM contexts WHERE id > :after ORDER BY id LIMIT 256")
  static let endContext = SQL("UPDATE contexts SET last_sequence = :sequence WHERE id = :id")
  static let deleteContext = SQL("DELETE FROM contexts WHERE id = :id")
  static let writeNote = SQL(NoteRecord.insert(into: "notes", "OR REPLACE"))
  static let deleteNote = SQL("DELETE FROM notes WHERE namespace = :namespace AND key = :key")
  static let readNote = SQL("SELECT value FROM notes WHERE namespace = :namespace AND key = :key")
  static let notesFrom = SQL(
    """
    SELECT \(NoteRecord.Column.list) FROM notes WHERE namespace = :namespace AND key >= :first AND key < :end
    """)
}
