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

/// Statements on records that the server keeps, and on how far tables are in step with it.
enum DownStatement {
  case writeTable, removeTable
  case insert, replace, remove, find, page
  case insertLink, removeLink, links
  case indexed
  case missing, missingCount, differing, unknownThere, unknownCount, referring
  case sweepRecords, sweepLinks

  /// The column that statements on numbers or ids read.
  enum Key: String, SQLiteColumn { case number, id }

  /// Of records that the server had, and of those that its answer lacks.
  enum Counts: String, SQLiteColumn { case held, lacking }

  /// The server had it, and no operation on it is in flight.
  private static let isKnown = "flags & 2 AND sent IS NULL"
  private static let isMissing =
    "NOT EXISTS (SELECT 1 FROM down_records n WHERE n.content = :new AND n.id = o.id)"
  private static let counts = """
    SELECT count(*) AS held, coalesce(sum(\(isLacked)), 0) AS lacking FROM records r WHERE tab = :tab AND \(isKnown)
    """
  private static let isLacked =
    "NOT EXISTS (SELECT 1 FROM down_records WHERE content = :content AND id = coalesce(r.server_id, r.id))"

  var sql: String {
    let rows = DownRecordRow.Column.list
    return switch self {
    case .writeTable: DownTableRow.insert(into: "down_tables", "OR REPLACE")
    case .removeTable: "DELETE FROM down_tables WHERE tab = :tab"
    case .insert: DownRecordRow.insert(into: "down_records", "OR IGNORE")
    case .replace: DownRecordRow.insert(into: "down_records", "OR REPLACE")
    case .remove: "DELETE FROM down_records WHERE content = :content AND id = :id"
    case .find: "SELECT \(rows) FROM down_records WHERE content = :content AND id = :id"
    case .page: "SELECT \(rows) FROM down_records WHERE content = :content AND id > :after ORDER BY id"
    case .insertLink: "INSERT OR IGNORE INTO down_links (content, target, id) VALUES (:content, :target, :id)"
    case .removeLink: "DELETE FROM down_links WHERE content = :content AND target = :target AND id = :id"
    case .links: "SELECT 0 AS number, id FROM down_links WHERE content = :content AND target = :target"
    case .indexed:
      """
      SELECT \(DownRecordRow.Column.list(of: "r")) FROM down_links l
      JOIN down_records r ON r.content = l.content AND r.id = l.id
      WHERE l.content = :content AND l.target = :target ORDER BY l.id LIMIT 1
      """
    case .missing:
      """
      SELECT 0 AS number, id FROM down_records o WHERE content = :old AND id > :after
      AND \(Self.isMissing) ORDER BY id LIMIT 500
      """
    case .missingCount: "SELECT count(*) FROM down_records o WHERE content = :old AND \(Self.isMissing)"
    case .differing:
      """
      SELECT \(DownRecordRow.Column.list(of: "s")) FROM down_records s
      LEFT JOIN records r ON r.tab = :tab AND r.server_id = s.id
      WHERE s.content = :content AND s.id > :after
      AND (r.number IS NULL OR r.state <> 0 OR r.fields <> s.fields) ORDER BY s.id LIMIT 500
      """
    // The server was asked for all that it has, and did not name them.
    case .unknownThere:
      """
      SELECT number, id FROM records r WHERE tab = :tab AND number > :after AND \(Self.isKnown) AND \(Self.isLacked)
      ORDER BY number LIMIT 500
      """
    case .unknownCount: Self.counts
    case .referring:
      """
      SELECT number, id FROM records r WHERE tab = :tab AND number > :after AND state <> 3
      AND EXISTS (SELECT 1 FROM json_each(CAST(r.fields AS TEXT)) WHERE key = :field AND value IN (:id, :server_id))
      ORDER BY number LIMIT 500
      """
    case .sweepRecords: Self.sweep("down_records", "id")
    case .sweepLinks: Self.sweep("down_links", "target")
    }
  }

  /// Deletes about 1,000 rows.
  private static func sweep(_ table: String, _ column: String) -> String {
    """
    DELETE FROM \(table) WHERE content = :content AND \(column) <= coalesce(
      (SELECT \(column) FROM \(table) WHERE content = :content ORDER BY \(column) LIMIT 1 OFFSET 999),
      (SELECT max(\(column)) FROM \(table) WHERE content = :content))
    """
  }
}

extension SQLiteColumn {
  /// The columns of a table under another name.
  fileprivate static func list(of alias: String) -> String {
    allCases.map { "\(alias).\($0.rawValue)" }.joined(separator: ", ")
  }
}
