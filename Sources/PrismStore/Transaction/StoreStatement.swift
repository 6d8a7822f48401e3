import PrismProtocol
import PrismSQLite

/// Every statement that the store keeps prepared.
enum StoreStatement: Hashable {
  case begin, commit
  /// Inserts this number of rows at once.
  case insertRows(Int, RowTable)
  case rows(RowStatement, RowTable)
  case packets(PacketStatement)
  case clientIDs(ClientIDStatement)
  case names(NameStatement)
  case records(RecordStatement)
  case down(DownStatement)

  var sql: String {
    switch self {
    case .begin: "BEGIN IMMEDIATE"
    case .commit: "COMMIT"
    // To let the statement fail alone, as is the default, SQLite would keep a copy of every page that it changes; but a
    // commit fails as a whole.
    case .insertRows(let count, let table):
      StoredRow.insert(into: table.name, "OR FAIL", rows: count, columns: table.queue.columns)
    case .rows(let statement, let table): statement.sql(table)
    case .packets(let statement): statement.sql
    case .clientIDs(let statement): statement.sql
    case .names(let statement): statement.sql
    case .records(let statement): statement.sql
    case .down(let statement): statement.sql
    }
  }
}

extension QueueID {
  /// Those of `StoredRow` that the table has.
  var columns: String { kind.hasPayload ? StoredRow.Column.list : StoredRow.Column.list(before: .payload) }
  fileprivate var payloadColumn: String { kind.hasPayload ? "payload" : "NULL" }
}

/// Statements on one table of a queue.
enum RowStatement {
  case walk, walkBack, walkHeads, first, exists
  /// Without a condition: SQLite frees the table's pages without writing them.
  case clear
  /// Of a run of neighbouring ids.
  case readRange, headsInRange, clientIDsInRange, sizeOfRange, deleteRange, sliceEnd
  case largePayloads
  case quarantine, deadLetter, salvage
  case changeBody

  /// The column that `clientIDsInRange` reads.
  enum ClientIDColumn: String, SQLiteColumn {
    case id
    case reportID = "report_id"
    case context
  }

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
    case .deleteRange: "DELETE FROM \(table) WHERE id BETWEEN :first AND :last"
    case .largePayloads: "SELECT \(heads) FROM \(table) WHERE length(payload) > :max ORDER BY id"
    case .quarantine:
      """
      INSERT INTO damaged SELECT NULL, \(queue.namespace), \(queue.kind.number), :time,
      \(StoredRow.Column.list(before: .payload)), \(queue.payloadColumn) FROM \(table) WHERE id = :id
      """
    case .deadLetter:
      """
      INSERT INTO dead (\(DeadLetterRecord.Column.list)) SELECT NULL, \(queue.namespace), \(queue.kind.number), id, type,
      created_time, flags, size, :report_id, :packet, :status, :message, :time, :attempts, :body,
      \(queue.payloadColumn), :checksum, :user FROM \(table) WHERE id = :id
      """
    case .changeBody: "UPDATE \(table) SET body = :body, size = :size, checksum = :checksum WHERE id = :id"
    case .salvage: StoredRow.insert(into: table, "OR IGNORE", columns: queue.columns)
    }
  }
}

/// Statements on packets in flight and delivered, and on the ledger.
enum PacketStatement {
  case insert, update, delete, shift
  case insertDelivery, deliveriesAfter, deleteDelivery
  case writeLedger
  case writeRelease, deleteRelease

  var sql: String {
    switch self {
    case .insert: PacketRecord.insert(into: "packets")
    case .update: "UPDATE packets SET bytes = :bytes, members = :members, checksum = :checksum WHERE id = :id"
    case .delete: "DELETE FROM packets WHERE id = :id"
    case .shift:
      """
      UPDATE packets SET position = position + 1
      WHERE namespace = :namespace AND kind = :kind AND position > :position
      """
    case .insertDelivery: DeliveryRecord.insert(into: "settled", "OR REPLACE")
    case .deliveriesAfter:
      "SELECT \(DeliveryRecord.Column.list) FROM settled WHERE id > :after ORDER BY id LIMIT 1000"
    case .deleteDelivery: "DELETE FROM settled WHERE id = :id"
    case .writeLedger: LedgerRecord.insert(into: "ledger", "OR REPLACE")
    case .writeRelease: ReleaseRecord.insert(into: "released", "OR REPLACE")
    case .deleteRelease: "DELETE FROM released WHERE number = :number"
    }
  }
}

/// Statements on the report ids that clients gave.
enum ClientIDStatement {
  case find, holders, deliveredBefore
  case runs, insert, insertNew, insertRun, deliver, delete, prune

  var sql: String {
    let (all, isKey) = (ClientIDRecord.Column.list, "namespace = :namespace AND report_id = :key")
    return switch self {
    case .find: "SELECT row FROM client_ids WHERE \(isKey)"
    case .holders:
      """
      SELECT \(all) FROM client_ids WHERE \(isKey) UNION ALL SELECT \(all) FROM client_ids
      WHERE namespace = :namespace AND report_id >= :key || ':' AND report_id < :key || ';'
      """
    case .deliveredBefore:
      "SELECT \(all) FROM client_ids WHERE delivered_time < :cutoff ORDER BY delivered_time LIMIT 1000"
    case .insert: "INSERT INTO client_ids (namespace, report_id, row) VALUES (:namespace, :key, :row)"
    case .insertNew: "INSERT OR IGNORE INTO client_ids (namespace, report_id, row) VALUES (:namespace, :key, :row)"
    case .runs:
      """
      SELECT \(all) FROM client_ids
      WHERE namespace = :namespace AND report_id >= :prefix || '0' AND report_id < :prefix || ':' AND report_id GLOB '*/*'
      """
    case .insertRun:
      """
      INSERT INTO client_ids (namespace, report_id, row, delivered_time) VALUES (:namespace, :key, :row, :time)
      """
    case .deliver: "UPDATE client_ids SET delivered_time = :time WHERE \(isKey)"
    case .delete: "DELETE FROM client_ids WHERE \(isKey) AND row = :row AND delivered_time IS NULL"
    case .prune: "DELETE FROM client_ids WHERE \(isKey)"
    }
  }
}

/// Statements on types, contexts and notes.
enum NameStatement {
  case insertType
  case insertContext, readContext, oldContexts, endContext, deleteContext
  case writeNote, deleteNote, readNote, notesFrom

  var sql: String {
    switch self {
    case .insertType: NameRecord.insert(into: NameRecord.Table.types.rawValue)
    case .insertContext: ContextRecord.insert(into: "contexts")
    case .readContext: "SELECT \(ContextRecord.Column.list) FROM contexts WHERE id = :id"
    case .oldContexts:
      "SELECT \(ContextRecord.Column.list(before: .checksum)) FROM contexts WHERE id > :after ORDER BY id LIMIT 256"
    case .endContext: "UPDATE contexts SET last_sequence = :sequence WHERE id = :id"
    case .deleteContext: "DELETE FROM contexts WHERE id = :id"
    case .writeNote: NoteRecord.insert(into: "notes", "OR REPLACE")
    case .deleteNote: "DELETE FROM notes WHERE namespace = :namespace AND key = :key"
    case .readNote: "SELECT value FROM notes WHERE namespace = :namespace AND key = :key"
    case .notesFrom:
      """
      SELECT \(NoteRecord.Column.list) FROM notes WHERE namespace = :namespace AND key >= :first AND key < :end
      """
    }
  }
}
