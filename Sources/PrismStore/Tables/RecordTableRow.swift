import PrismProtocol
import PrismSQLite

/// A row of `record_tables`: one table of records in one namespace, with its ledger.
struct RecordTableRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case number, namespace, name, generation, records, stored, waiting, claimed, delivered, dead, removed, corrupt
    case position, checksum
  }

  /// Accounts that a change of a record can be in, and their columns.
  static let accounts = Column.accounts([.waiting, .claimed, .delivered, .dead, .removed, .corrupt])

  var number = 0
  var namespace = 0
  var name = RecordTableName.command
  /// Counts the commits that changed the table.
  var generation: Int64 = 0
  /// Records, those that wait for their deletion among them.
  var records = 0
  /// Of the changes.
  var ledger = Ledger()
  /// The last number that a waiting change was given, over all tables when it was written.
  var position: Int64 = 0

  mutating func pass(_ row: inout RowFields<Column>) {
    row.count(.number, &number)
    row.count(.namespace, &namespace)
    row(.generation, &generation)
    row.count(.records, &records)
    row.count(.stored, &ledger.stored)
    row(.name, &name)
    for (account, column) in Self.accounts { row.count(column, &ledger[account]) }
    row(.position, &position)
    row.check(.checksum)
  }

  /// The identity of the ledger holds, and no account is below 0.
  var isPossible: Bool {
    ledger.isBalanced && records >= 0 && Self.accounts.allSatisfy { ledger[$0.account] >= 0 }
  }
}
