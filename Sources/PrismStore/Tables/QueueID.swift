import PrismProtocol

/// A namespace and a kind of row: the key of a queue, and of its first table: `m7` or `p7` for the namespace numbered 7.
///
/// Each queue has tables of its own, so that every insert is an append without an index to keep, and a claim never sees
/// the backlog of another namespace.
struct QueueID: Hashable, Sendable {
  static let namespaces = 1...1_000_000

  let namespace: Int
  let kind: RowKind
  /// Its rows are those of the ring in memory (`MemoryRing`): its tables are in another file.
  let isInMemory: Bool

  init(namespace: Int, kind: RowKind, isInMemory: Bool = false) {
    (self.namespace, self.kind, self.isInMemory) = (namespace, kind, isInMemory)
  }

  /// From the columns `namespace` and `kind`. nil if they name no queue.
  init?(_ namespace: Int64?, _ kind: Int64?) {
    guard let namespace, let kind, Self.namespaces.contains(Int(namespace)), RowKind.reports.indices.contains(Int(kind))
    else { return nil }
    self.init(namespace: Int(namespace), kind: RowKind.reports[Int(kind)])
  }

  /// nil if no queue has a table of this name.
  init?(table: String) {
    guard let kind = RowKind.reports.first(where: { table.hasPrefix($0.tablePrefix) }) else { return nil }
    let numbers = table.dropFirst(kind.tablePrefix.count).split(separator: "_", omittingEmptySubsequences: false)
    guard numbers.count <= 2, let number = Int(numbers[0]), numbers.allSatisfy({ Int($0) != nil }) else { return nil }
    self.init(namespace: number, kind: kind)
  }

  static func all(of namespace: Int) -> [QueueID] { RowKind.reports.map { QueueID(namespace: namespace, kind: $0) } }

  /// The queue of the ring in memory beside this one.
  var inMemory: QueueID { QueueID(namespace: namespace, kind: kind, isInMemory: true) }

  /// The queue of metas beside this one.
  var metas: QueueID { QueueID(namespace: namespace, kind: .meta, isInMemory: isInMemory) }

  /// In `StoreState`.
  var index: Int { (namespace * RowKind.reports.count + kind.number) * 2 + (isInMemory ? 1 : 0) }
  /// The name of the first one.
  var table: String { (isInMemory ? "mem." : "") + kind.tablePrefix + String(namespace) }
}

/// The meaning of a row's `flags`.
struct RowFlags: OptionSet, Sendable {
  let rawValue: Int64
  /// The body is complete: no context is spliced in.
  static let selfContained = RowFlags(rawValue: 1)
  /// The body has a `CREATE_TIME` of its own.
  static let ownCreateTime = RowFlags(rawValue: 2)
  /// A client gave `report_id`, which is in `client_ids`. Without it a `report_id` is of a run (`KnownRuns`).
  static let clientID = RowFlags(rawValue: 4)
}

/// One of the tables that hold a queue's rows: `m7` is the first one of the queue, `m7_2` one that came later.
struct RowTable: Hashable, Sendable {
  let queue: QueueID
  /// 0 for the table that is made with the namespace.
  let number: Int

  init(_ queue: QueueID, number: Int) { (self.queue, self.number) = (queue, number) }

  var name: String { number == 0 ? queue.table : "\(queue.table)_\(number)" }
}

/// The user whose report a row is, by the kernel's word.
///
/// A row with a context belongs to the user of its context. In a row without one the `context` column holds the user as
/// the complement of the user id, which is negative. So the owner costs ingest neither a column nor an index, and is
/// part of what the row's checksum covers.
struct RowOwner: Hashable, Comparable, Sendable {
  /// The user id; negative for the two that are no user.
  let number: Int64

  init(userID: UInt32) { number = Int64(userID) }
  private init(number: Int64) { self.number = number }

  /// - Parameter contextColumn: the `context` of a row without a context: 0 or less.
  init(contextColumn: Int64) { number = ~contextColumn }

  /// - Parameter stored: the value of a `user` column.
  init(stored: Int64) { number = stored }

  /// Reports that a version before 3 of the database stored: they count as one user's.
  static let unknown = RowOwner(number: -1)
  /// Rows that were not counted yet, see `UserShares`.
  static let uncounted = RowOwner(number: -2)

  var contextColumn: Int64 { ~number }
  /// nil if the user is not known: (uid_t)-1 is no user's id.
  var userID: UInt32? { UInt32(exactly: number).flatMap { $0 == .max ? nil : $0 } }
  static func < (a: Self, b: Self) -> Bool { a.number < b.number }
}
