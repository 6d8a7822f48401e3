import PrismProtocol
import PrismSQLite

/// Statements on records, their tables, and their packets in flight.
enum RecordStatement {
  case writeTable
  case insert, replace, remove
  case find, findServerID, byNumber, range, page, waiting, refused, owned
  case insertPacket, deletePacket, shiftPackets
  case insertOperation, operations, deleteOperations

  /// The columns that `waiting` reads.
  enum Head: String, SQLiteColumn { case number, position }

  var sql: String {
    let (records, operations) = (RecordRow.Column.list, RecordOperationRow.Column.list)
    return switch self {
    case .writeTable: RecordTableRow.insert(into: "record_tables", "OR REPLACE")
    case .insert: RecordRow.insert(into: "records")
    case .replace: RecordRow.insert(into: "records", "OR REPLACE")
    case .remove: "DELETE FROM records WHERE number = :number"
    case .find: "SELECT \(records) FROM records WHERE tab = :tab AND id = :id"
    // A record that the server may not have keeps the id of another store until it has a new one.
    case .findServerID:
      "SELECT \(records) FROM records WHERE tab = :tab AND server_id = :id ORDER BY flags & 2 DESC LIMIT 1"
    case .range:
      "SELECT \(records) FROM records WHERE number > :after AND number <= :through ORDER BY number LIMIT :limit"
    case .byNumber: "SELECT \(records) FROM records WHERE number = :number"
    case .page:
      """
      SELECT \(records) FROM records
      WHERE tab = :tab AND id > :after AND state <> \(RecordState.delete.rawValue) ORDER BY id
      """
    case .owned:
      "SELECT count(*) FROM (SELECT 1 FROM records WHERE tab = :tab AND owner = :owner LIMIT :limit)"
    case .waiting:
      """
      SELECT \(Head.list) FROM records
      WHERE tab = :tab AND next = :next AND next > 0 AND position <= :bound ORDER BY position LIMIT :limit
      """
    case .refused:
      """
      SELECT \(records) FROM records
      WHERE tab = :tab AND flags >= \(RecordRow.refusedFlag) AND number > :after ORDER BY number LIMIT :limit
      """
    case .insertPacket: RecordPacketRow.insert(into: "record_packets", "OR REPLACE")
    case .deletePacket: "DELETE FROM record_packets WHERE id = :id"
    case .shiftPackets:
      "UPDATE record_packets SET position = position + 1 WHERE namespace = :namespace AND position > :position"
    case .insertOperation: RecordOperationRow.insert(into: "record_operations")
    case .operations: "SELECT \(operations) FROM record_operations WHERE packet = :packet ORDER BY place"
    case .deleteOperations: "DELETE FROM record_operations WHERE packet = :packet"
    }
  }
}
