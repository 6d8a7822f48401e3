import PrismProtocol
import PrismSQLite

/// A row of `record_tables`: one table of records in one namespace, with its ledger.
struct RecordTableRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case number, namespace, name, generation, records, stored, waiting, claimed, delivered, dead, removed, corrupt
    case position, checksum
  }

  /// Accounts that a change of a record can be in, and their columns.
  static let accounts: [(account: Ledger.Account, column: Column)] = [
    (.waiting, .waiting), (.claimed, .claimed), (.delivered, .delivered), (.dead, .dead), (.removed, .removed),
    (.corrupt, .corrupt),
  ]

  let number: Int
  let namespace: Int
  let name: RecordTableName
  /// Counts the commits that changed the table.
  var generation: Int64 = 0
  /// Records, those that wait for their deletion among them.
  var records = 0
  /// Of the changes.
  var ledger = Ledger()
  /// The last number that a waiting change was given, over all tables when it was written.
  var position: Int64 = 0

  init(number: Int, namespace: Int, name: RecordTableName) {
    (self.number, self.namespace, self.name) = (number, namespace, name)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let number = row.count(.number), let namespace = row.count(.namespace),
      let name = row.string(.name).flatMap({ RecordTableName($0) }), let generation = row.integer(.generation),
      let records = row.count(.records), let stored = row.count(.stored),
      let position = row.integer(.position)
    else { return nil }
    self.init(number: number, namespace: namespace, name: name)
    (self.generation, self.records, ledger.stored, self.position) = (generation, records, stored, position)
    for (account, column) in Self.accounts {
      guard let count = row.count(column) else { return nil }
      ledger[account] = count
    }
    guard row.integer(.checksum) == checksum, isPossible else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .number: number, .namespace: namespace, .name: name.text, .generation: generation, .records: records,
      .stored: ledger.stored,
    ])
    for (account, column) in Self.accounts { insert.bind(column, Int64(ledger[account])) }
    insert.bind([.position: position, .checksum: checksum])
  }

  /// Of every column before it.
  var checksum: Int64 {
    var sum = RecordChecksum(Int64(number), Int64(namespace), generation, Int64(records), Int64(ledger.stored))
    sum.add(name.text)
    sum.add(Self.accounts.map { Int64(ledger[$0.account]) })
    sum.add([position])
    return sum.value
  }

  /// The identity of the ledger holds, and no account is below 0.
  var isPossible: Bool {
    ledger.isBalanced && records >= 0 && Self.accounts.allSatisfy { ledger[$0.account] >= 0 }
  }
}
