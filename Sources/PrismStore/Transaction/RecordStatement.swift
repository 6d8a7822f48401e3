import PrismProtocol
import PrismSQLite

/// Statements on records, their tables, and their packets in flight.
enum RecordStatement {
  /// The columns that `waiting` reads.
  enum Head: String, SQLiteColumn { case number, position }

  private static let records = RecordRow.Column.list
  static let writeTable = SQL(RecordTableRow.insert(into: "record_tables", "OR REPLACE"))
  static let insert = SQL(RecordRow.insert(into: "records"))
  static let replace = SQL(RecordRow.insert(into: "records", "OR REPLACE"))
  static let remove = SQL("DELETE FROM records WHERE number = :number")
  static let find = SQL("SELECT \(records) FROM records WHERE tab = :tab AND id = :id")
  // A record that the server may not have keeps the id of another store until it has a new one.
  static let findServerID = SQL(
    "SELECT \(records) FROM records WHERE tab = :tab AND server_id = :id ORDER BY flags & 2 DESC LIMIT 1")
  static let range = SQL(
    "SELECT \(records) FROM records WHERE number > :after AND number <= :through ORDER BY number LIMIT :limit")
  static let byNumber = SQL("SELECT \(records) FROM records WHERE number = :number")
  static let page = SQL(
    """
    SELECT \(records) FROM records
    WHERE tab = :tab AND id > :after AND state <> \(RecordState.delete.rawValue) ORDER BY id
    """)
  static let owned = SQL(
    "SELECT count(*) FROM (SELECT 1 FROM records WHERE tab = :tab AND owner = :owner LIMIT :limit)")
  static let waiting = SQL(
    """
    SELECT \(Head.list) FROM records
    WHERE tab = :tab AND next = :next AND next > 0 AND position <= :bound ORDER BY position LIMIT :limit
    """)
  static let refused = SQL(
    """
    SELECT \(records) FROM records
    WHERE tab = :tab AND flags >= \(RecordRow.refusedFlag) AND number > :after ORDER BY number LIMIT :limit
    """)
  static let forgetDeletions = SQL(
    """
    DELETE FROM records WHERE tab = :tab AND next > 0 AND position <= (
      SELECT position FROM records WHERE tab = :tab AND next = \(RecordState.delete.rawValue) AND next > 0
      ORDER BY position DESC LIMIT 1 OFFSET \(RecordRow.keptDeletionsMax))
    """)
  static let insertPacket = SQL(RecordPacketRow.insert(into: "record_packets", "OR REPLACE"))
  static let deletePacket = SQL("DELETE FROM record_packets WHERE id = :id")
  static let shiftPackets = SQL(
    "UPDATE record_packets SET position = position + 1 WHERE namespace = :namespace AND position > :position")
  static let insertOperation = SQL(RecordOperationRow.insert(into: "record_operations"))
  static let operations = SQL(
    "SELECT \(RecordOperationRow.Column.list) FROM record_operations WHERE packet = :packet ORDER BY place")
  static let deleteOperations = SQL("DELETE FROM record_operations WHERE packet = :packet")
}

/// Statements on records that the server keeps, and on how far tables are in step with it.
enum DownStatement {
  /// The column that statements on numbers or ids read.
  enum Key: String, SQLiteColumn { case number, id }

  /// Of records that the server had, and of those that its answer lacks.
  enum Counts: String, SQLiteColumn { case held, lacking }

  /// The server had it, and no operation on it is in flight.
  private static let isKnown = "flags & 2 AND sent IS NULL"
  private static let isMissing =
    "NOT EXISTS (SELECT 1 FROM down_records n WHERE n.content = :new AND n.id = o.id)"
  private static let isLacked =
    "NOT EXISTS (SELECT 1 FROM down_records WHERE content = :content AND id = coalesce(r.server_id, r.id))"

  private static let rows = DownRecordRow.Column.list
  static let writeTable = SQL(DownTableRow.insert(into: "down_tables", "OR REPLACE"))
  static let removeTable = SQL("DELETE FROM down_tables WHERE tab = :tab")
  static let insert = SQL(DownRecordRow.insert(into: "down_records", "OR IGNORE"))
  static let replace = SQL(DownRecordRow.insert(into: "down_records", "OR REPLACE"))
  static let remove = SQL("DELETE FROM down_records WHERE content = :content AND id = :id")
  static let find = SQL("SELECT \(rows) FROM down_records WHERE content = :content AND id = :id")
  static let page = SQL("SELECT \(rows) FROM down_records WHERE content = :content AND id > :after ORDER BY id")
  static let insertLink = SQL("INSERT OR IGNORE INTO down_links (content, target, id) VALUES (:content, :target, :id)")
  static let removeLink = SQL("DELETE FROM down_links WHERE content = :content AND target = :target AND id = :id")
  static let links = SQL("SELECT 0 AS number, id FROM down_links WHERE content = :content AND target = :target")
  static let indexed = SQL(
    """
    SELECT \(DownRecordRow.Column.list(of: "r")) FROM down_links l
    JOIN down_records r ON r.content = l.content AND r.id = l.id
    WHERE l.content = :content AND l.target = :target ORDER BY l.id LIMIT 1
    """)
  static let missing = SQL(
    """
    SELECT 0 AS number, id FROM down_records o WHERE content = :old AND id > :after
    AND \(isMissing) ORDER BY id LIMIT 500
    """)
  static let missingCount = SQL("SELECT count(*) FROM down_records o WHERE content = :old AND \(isMissing)")
  static let differing = SQL(
    """
    SELECT \(DownRecordRow.Column.list(of: "s")) FROM down_records s
    LEFT JOIN records r ON r.tab = :tab AND r.server_id = s.id
    WHERE s.content = :content AND s.id > :after
    AND (r.number IS NULL OR r.state <> 0 OR r.fields <> s.fields) ORDER BY s.id LIMIT 500
    """)
  // The server was asked for all that it has, and did not name them.
  static let unknownThere = SQL(
    """
    SELECT number, id FROM records r WHERE tab = :tab AND number > :after AND \(isKnown) AND \(isLacked)
    ORDER BY number LIMIT 500
    """)
  static let unknownCount = SQL(
    """
    SELECT count(*) AS held, coalesce(sum(\(isLacked)), 0) AS lacking FROM records r WHERE tab = :tab AND \(isKnown)
    """)
  static let referring = SQL(
    """
    SELECT number, id FROM records r WHERE tab = :tab AND number > :after AND state <> 3
    AND EXISTS (SELECT 1 FROM json_each(CAST(r.fields AS TEXT)) WHERE key = :field AND value IN (:id, :server_id))
    ORDER BY number LIMIT 500
    """)
  static let sweepRecords = SQL(sweep("down_records", "id"))
  static let sweepLinks = SQL(sweep("down_links", "target"))

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
    allCases.map { "\(alias).\($0.sqlName)" }.joined(separator: ", ")
  }
}
