import PrismProtocol

/// Every statement that the store keeps prepared.
enum StoreStatement: Hashable {
  // Of one namespace and kind
  case insertRows(Int, QueueID)
  case walkRows(QueueID)
  case walkSizes(QueueID)
  case readRange(QueueID)
  case deleteRange(QueueID)
  case clientIDsInRange(QueueID)
  case lateRows(QueueID)
  case rowExists(QueueID)
  case sizeOfRange(QueueID)
  case ownersInRange(QueueID)
  case layAside(QueueID)
  case bury(QueueID)
  case largePayloads(QueueID)
  case firstRow(QueueID)
  case salvageRow(QueueID)
  // Of all
  case begin, commit
  case insertType, insertContext, readContext, writeLedger
  case insertPacket, updatePacket, deletePacket, shiftPackets, insertSettled
  case writeNote, deleteNote, readNote
  case findClientID, holdersOfClientID, insertClientID, deliverClientID, deleteClientID
  case deliveredBefore, pruneClientID, pruneSettled, oldContexts, endContext, deleteContext
  case salvageClientID

  var sql: String {
    switch self {
    case .insertRows(let count, let queue): Self.insert(count, queue)
    case .walkRows(let queue):
      "SELECT \(queue.columns) FROM \(queue.table) WHERE id > ? AND id < ? ORDER BY id"
    case .walkSizes(let queue):
      "SELECT id, size, created_time, flags, context FROM \(queue.table) WHERE id > ? AND id < ? ORDER BY id"
    case .readRange(let queue): "SELECT \(queue.columns) FROM \(queue.table) WHERE id BETWEEN ? AND ? ORDER BY id"
    case .deleteRange(let queue): "DELETE FROM \(queue.table) WHERE id BETWEEN ? AND ?"
    case .clientIDsInRange(let queue):
      "SELECT id, report_id, context FROM \(queue.table) WHERE id BETWEEN ? AND ? AND flags & \(RowFlags.clientID.rawValue)"
    case .lateRows(let queue):
      "SELECT id, size, created_time, flags FROM \(queue.table) WHERE flags >= 8 AND created_time < ? ORDER BY created_time"
    case .rowExists(let queue): "SELECT 1 FROM \(queue.table) WHERE id = ?"
    case .begin: "BEGIN IMMEDIATE"
    case .commit: "COMMIT"
    case .insertType: "INSERT INTO types (number, name, checksum) VALUES (?, ?, ?)"
    case .insertContext:
      "INSERT INTO contexts (id, namespace, last_sequence, checksum, members, user) VALUES (?, ?, ?, ?, ?, ?)"
    case .readContext: "SELECT namespace, checksum, members, user FROM contexts WHERE id = ?"
    case .writeLedger: "REPLACE INTO ledger VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
    case .insertPacket: "INSERT INTO packets VALUES (?,?,?,?,?,?,?,?,?,?)"
    case .updatePacket: "UPDATE packets SET bytes = ?, members = ?, checksum = ? WHERE id = ?"
    case .deletePacket: "DELETE FROM packets WHERE id = ?"
    case .shiftPackets:
      "UPDATE packets SET position = position + 1 WHERE namespace = ? AND kind = ? AND position > ?"
    case .insertSettled: "REPLACE INTO settled VALUES (?,?,?,?,?,?,?)"
    case .writeNote: "REPLACE INTO notes (namespace, key, value) VALUES (?, ?, ?)"
    case .deleteNote: "DELETE FROM notes WHERE namespace = ? AND key = ?"
    case .readNote: "SELECT value FROM notes WHERE namespace = ? AND key = ?"
    case .findClientID: "SELECT row FROM client_ids WHERE namespace = ? AND report_id = ?"
    case .holdersOfClientID:
      """
      SELECT report_id, row FROM client_ids WHERE namespace = ?1 AND report_id = ?2 UNION ALL
      SELECT report_id, row FROM client_ids WHERE namespace = ?1 AND report_id >= ?2 || ':' AND report_id < ?2 || ';'
      """
    case .insertClientID: "INSERT INTO client_ids (namespace, report_id, row) VALUES (?, ?, ?)"
    case .deliverClientID: "UPDATE client_ids SET delivered_time = ? WHERE namespace = ? AND report_id = ?"
    case .deleteClientID:
      "DELETE FROM client_ids WHERE namespace = ? AND report_id = ? AND row = ? AND delivered_time IS NULL"
    case .sizeOfRange(let queue): "SELECT total(size) FROM \(queue.table) WHERE id BETWEEN ? AND ?"
    case .ownersInRange(let queue): "SELECT id, size, context FROM \(queue.table) WHERE id BETWEEN ? AND ?"
    case .layAside(let queue):
      "INSERT INTO damaged SELECT NULL, \(queue.namespace), \(QueueID.number(of: queue.kind)), ?2, \(QueueID.columns), \(queue.kind == .payload ? "payload" : "NULL") FROM \(queue.table) WHERE id = ?1"
    case .bury(let queue):
      "INSERT INTO dead SELECT NULL, \(queue.namespace), \(QueueID.number(of: queue.kind)), id, type, created_time, flags, size, ?2, ?3, ?4, ?5, ?6, ?7, ?8, \(queue.kind == .payload ? "payload" : "NULL"), ?9, ?10 FROM \(queue.table) WHERE id = ?1"
    case .largePayloads(let queue): "SELECT id, size FROM \(queue.table) WHERE length(payload) > ? ORDER BY id"
    case .deliveredBefore:
      "SELECT namespace, report_id, row FROM client_ids WHERE delivered_time < ? ORDER BY delivered_time LIMIT 1000"
    case .pruneClientID: "DELETE FROM client_ids WHERE namespace = ? AND report_id = ?"
    case .pruneSettled:
      "DELETE FROM settled WHERE id IN (SELECT id FROM settled WHERE id < ? AND settled_time < ? ORDER BY id LIMIT 1000)"
    case .oldContexts: "SELECT id, namespace, last_sequence FROM contexts WHERE id > ? ORDER BY id LIMIT 256"
    case .endContext: "UPDATE contexts SET last_sequence = ? WHERE id = ?"
    case .deleteContext: "DELETE FROM contexts WHERE id = ?"
    case .firstRow(let queue): "SELECT id FROM \(queue.table) WHERE id > ? AND id < ? ORDER BY id LIMIT 1"
    case .salvageRow(let queue): Self.insert(1, queue).replacing("OR FAIL", with: "OR IGNORE")
    case .salvageClientID: "INSERT OR IGNORE INTO client_ids (namespace, report_id, row) VALUES (?, ?, ?)"
    }
  }

  /// A commit fails or holds as a whole; to fail as a statement too, as is the default, SQLite would keep a copy of every
  /// page that the statement changes.
  private static func insert(_ rows: Int, _ queue: QueueID) -> String {
    let row = "(?,?,?,?,?,?,?,?,?\(queue.kind == .payload ? ",?" : ""))"
    return "INSERT OR FAIL INTO \(queue.table) (\(queue.columns)) VALUES "
      + repeatElement(row, count: rows).joined(separator: ",")
  }
}
