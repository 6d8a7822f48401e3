import PrismProtocol

/// Rows that count equal reports, as far as they may still count more. Kept in memory only: the counts are in the rows. After a
/// start, or a failed transaction, the next equal report begins a row of its own, so no report is counted twice or lost.
struct RepeatedRows {
  /// Reports of one user are equal to no other's.
  struct Key: Hashable {
    var namespace: Int
    var owner: RowOwner
    var high: UInt64, low: UInt64

    init(_ repeated: ReportBatch.Repeat, owner: RowOwner, namespace: Int) {
      (self.namespace, self.owner) = (namespace, owner)
      (high, low) = (repeated.high, repeated.low)
    }
  }

  struct Entry {
    let row: RowID
    /// That the client of the first one gave.
    let reportID: [UInt8]?
    let hasPayload: Bool
    let isInMemory: Bool
    /// Arrivals that it counts, in milliseconds since 1970.
    let window: Range<Int64>
    var count = 1
    /// Created times.
    var first: Int64, last: Int64
    /// Of `members` at the end of the stored body.
    var storedBytes = 0

    init(
      _ row: RowID, _ repeated: ReportBatch.Repeat, createdTime: Int64, reportID: [UInt8]?, hasPayload: Bool,
      isInMemory: Bool
    ) {
      (self.row, self.reportID, self.hasPayload, self.isInMemory) = (row, reportID, hasPayload, isInMemory)
      window = repeated.arrivedTime..<repeated.arrivedTime + repeated.windowMilliseconds
      (first, last) = (createdTime, createdTime)
    }

    mutating func count(createdTime: Int64) {
      count += 1
      (first, last) = (min(first, createdTime), max(last, createdTime))
    }

    /// JSON members without braces.
    var members: [UInt8] {
      Array("\"REPEAT_COUNT\":\(count),\"REPEAT_FIRST\":\(first),\"REPEAT_LAST\":\(last)".utf8)
    }
  }

  /// Past it all are forgotten: the next equal reports begin rows of their own.
  static let rowsMax = 1024
  private var entries: [Key: Entry] = [:]

  subscript(key: Key) -> Entry? {
    get { entries[key] }
    set {
      if newValue != nil, entries[key] == nil, entries.count == Self.rowsMax { entries = [:] }
      entries[key] = newValue
    }
  }

  /// Bytes that the rows of `batch` need, those left out that will be counted on another. A row with a payload is stored as
  /// two, each with the meta.
  func bytesNeeded(for batch: ReportBatch, _ namespace: Int) -> Int {
    var needed = Self.bytes(of: batch)
    var seen: Set<Key> = []
    for case (let row, .repeatable(let repeated)) in batch.marks where !batch.isKept(batch.rows[row]) {
      let key = Key(repeated, owner: RowOwner(userID: batch.userID), namespace: namespace)
      let isRepeat = !seen.insert(key).inserted || entries[key]?.window.contains(repeated.arrivedTime) == true
      if isRepeat { needed -= Self.bytes(of: batch.rows[row]) }
    }
    return needed
  }

  /// Bytes of the quota that the rows of `batch` need if all are stored: those of the ring need no byte of it.
  static func bytes(of batch: ReportBatch) -> Int {
    var bytes = 0
    let hasKept = batch.hasKeptTypes
    for row in batch.rows where !hasKept || !batch.isKept(row) { bytes += Self.bytes(of: row) }
    return bytes
  }

  static func bytes(of row: ReportBatch.Row) -> Int {
    row.metaBytes + (row.payload.map { row.metaBytes + $0.count } ?? 0)
  }
}
