import PrismProtocol
import PrismSQLite

/// A row of `ledger`: the counters of one queue as of its last disposition. `packets` says what is claimed.
struct LedgerRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case namespace, kind, stored, waiting, claimed, delivered, expired, evicted, cleared, dead, removed, corrupt, bytes
    case sequence, newestCrash, newestRealtime, newestRest, lastAccepted, checksum, segments, spent, kept, overwritten
    case ring
  }

  var queue = QueueID(namespace: 0, kind: .meta)
  var ledger = Ledger()
  /// Sum of `size` of waiting, claimed and dead rows.
  var bytes = 0
  /// The last number that a row of this queue was given.
  var lastSequence: Int64 = 0
  var lastAccepted: PacketID?
  var segments = RowSegments()
  /// Had the newest `created_time` of each priority before version 7.
  var formerNumbers: [Int64] = [0, 0, 0]

  private static let accounts = Column.accounts([
    .waiting, .claimed, .delivered, .expired, .evicted, .cleared, .dead, .removed, .corrupt,
  ])
  /// Since version 9.
  private static let ringAccounts = Column.accounts([.kept, .overwritten])
  private static let formerColumns: [Column] = [.newestCrash, .newestRealtime, .newestRest]

  mutating func pass(_ row: inout RowFields<Column>) {
    row.queue(.namespace, .kind, &queue)
    row.count(.stored, &ledger.stored)
    for (account, column) in Self.accounts { row.count(column, &ledger[account]) }
    row.count(.bytes, &bytes)
    row(.sequence, &lastSequence)
    for (place, column) in Self.formerColumns.enumerated() { row(column, &formerNumbers[place]) }
    row(.lastAccepted, &lastAccepted)
    var (text, spent, ring) = (segments.text, segments.spentText, segments.ringText)
    row(.segments, &text)
    row(.spent, &spent)
    row(.ring, &ring)
    for (account, column) in Self.ringAccounts { row.count(column, &ledger[account], isNewer: true, isSummed: false) }
    let kept = Self.ringAccounts.map { Int64(ledger[$0.account]) }
    if kept.contains(where: { $0 != 0 }) { row.add(kept) }
    row.check(.checksum, isNewer: true)
    guard row.isReading else { return }
    guard row.isWhole, let found = RowSegments(text: text, spentText: spent, ringText: ring) else {
      row.isWhole = false
      return
    }
    segments = found
  }

  /// The identity holds, and no account is below 0: a damaged tree leads to some rows twice.
  var isPossible: Bool { ledger.isBalanced && Ledger.Account.allCases.allSatisfy { ledger[$0] >= 0 } }
}
