import PrismProtocol
import PrismSQLite

/// A row of `ledger`: the counters of one queue as of its last disposition. `packets` says what is claimed.
struct LedgerRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case namespace, kind, stored, waiting, claimed, delivered, expired, evicted, cleared, dead, removed, corrupt, bytes
    case sequence
    case newestCrash = "newest_crash"
    case newestRealtime = "newest_realtime"
    case newestRest = "newest_rest"
    case lastAccepted = "last_accepted"
    case checksum, segments, spent, kept, overwritten, ring
  }

  var queue: QueueID
  var ledger = Ledger()
  /// Sum of `size` of waiting, claimed and dead rows.
  var bytes = 0
  /// The last number that a row of this queue was given.
  var lastSequence: Int64 = 0
  var lastAccepted: PacketID?
  var segments = RowSegments()
  private var formerNumbers: [Int64] = [0, 0, 0]

  init(queue: QueueID) { self.queue = queue }

  private static let accounts: [(account: Ledger.Account, column: Column)] = [
    (.waiting, .waiting), (.claimed, .claimed), (.delivered, .delivered), (.expired, .expired), (.evicted, .evicted),
    (.cleared, .cleared), (.dead, .dead), (.removed, .removed), (.corrupt, .corrupt),
  ]
  /// Since version 9.
  private static let ringAccounts: [(account: Ledger.Account, column: Column)] = [
    (.kept, .kept), (.overwritten, .overwritten),
  ]
  /// Had the newest `created_time` of each priority before version 7.
  private static let formerColumns: [Column] = [.newestCrash, .newestRealtime, .newestRest]

  /// nil if it is not what was written. Databases of version 1 have no checksum.
  init?(_ row: some SQLiteValues<Column>) {
    guard let queue = QueueID(row.integer(.namespace), row.integer(.kind)),
      let stored = row.count(.stored), let bytes = row.count(.bytes), let sequence = row.integer(.sequence)
    else { return nil }
    (self.queue, self.bytes, lastSequence, ledger.stored) = (queue, bytes, sequence, stored)
    for (account, column) in Self.accounts {
      guard let count = row.count(column) else { return nil }
      ledger[account] = count
    }
    for (account, column) in Self.ringAccounts { ledger[account] = row.count(column) ?? 0 }
    formerNumbers = Self.formerColumns.compactMap { row.integer($0) }
    guard formerNumbers.count == Self.formerColumns.count else { return nil }
    lastAccepted = row.data(.lastAccepted).flatMap { PacketID(bytes: $0) }
    guard
      let segments = RowSegments(
        text: row.string(.segments), spentText: row.string(.spent), ringText: row.string(.ring))
    else { return nil }
    self.segments = segments
    guard !row.has(.checksum) || row.integer(.checksum) == checksum, ledger.isBalanced else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([.namespace: queue.namespace, .kind: queue.kind.number, .stored: ledger.stored])
    for (account, column) in Self.accounts + Self.ringAccounts { insert.bind(column, Int64(ledger[account])) }
    insert.bind([.bytes: bytes, .sequence: lastSequence])
    for (column, number) in zip(Self.formerColumns, formerNumbers) { insert.bind(column, number) }
    insert.bind([
      .lastAccepted: lastAccepted?.bytes, .checksum: checksum, .segments: segments.text, .spent: segments.spentText,
      .ring: segments.ringText,
    ])
  }

  /// Of every other column.
  var checksum: Int64 {
    var sum = RecordChecksum(Int64(queue.namespace), Int64(queue.kind.number))
    var numbers = [Int64(ledger.stored)]
    numbers.reserveCapacity(15)
    for (account, _) in Self.accounts { numbers.append(Int64(ledger[account])) }
    numbers.append(Int64(bytes))
    numbers.append(lastSequence)
    numbers += formerNumbers
    sum.add(numbers)
    if let lastAccepted { sum.add(lastAccepted.bytes) }
    // Databases before version 6 don't have these.
    if let text = segments.text { sum.add(text) }
    if let text = segments.spentText { sum.add(text) }
    if let text = segments.ringText { sum.add(text) }
    let ring = Self.ringAccounts.map { Int64(ledger[$0.account]) }
    if ring.contains(where: { $0 != 0 }) { sum.add(ring) }
    return sum.value
  }

  /// The identity holds, and no account is below 0: a damaged tree leads to some rows twice.
  var isPossible: Bool { ledger.isBalanced && Ledger.Account.allCases.allSatisfy { ledger[$0] >= 0 } }
}
