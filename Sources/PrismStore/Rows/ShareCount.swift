import PrismProtocol
import PrismSQLite

/// Counts the bytes that each user holds of a namespace when a quota first needs them. The counts then follow each
/// commit.
struct ShareCount: PlainOperations {
  /// After this time the count is continued by the next commit that needs it, or by `maintain`.
  private static let durationMax: Duration = .milliseconds(200)
  private static let rowsBetweenLooksAtClock = 4096

  let transaction: StoreTransaction

  /// Counts the rows that are not counted yet: once a run, in a walk over the namespace's rows without their bodies.
  func count(_ namespace: Int) throws(SQLiteError) {
    guard state.shares[namespace]?.isComplete != true else { return }
    var shares: UserShares
    if let begun = state.shares.removeValue(forKey: namespace) {
      shares = begun
    } else {
      shares = try sharesOfDead(namespace)
    }
    shares.forgetCleared()  // rows that become known may be among those that were passed
    let deadline = transaction.uptime + Self.durationMax
    shares.isComplete = true
    for queue in QueueID.all(of: namespace) {
      for priority in Priority.leaving where shares.isComplete {
        shares.isComplete = try count(priority, queue, into: &shares, until: deadline)
      }
    }
    state.shares[namespace] = shares
  }

  /// Continues a count that was too long for one commit. - Returns: whether there was one.
  func countMore() throws(SQLiteError) -> Bool {
    guard let namespace = state.shares.first(where: { !$0.value.isComplete })?.key else { return false }
    try count(namespace)
    return true
  }

  /// - Returns: whether it came to the end.
  private func count(
    _ priority: Priority, _ queue: QueueID, into shares: inout UserShares, until deadline: Duration
  ) throws(SQLiteError) -> Bool {
    var last = shares.lastCounted(priority, queue.kind)
    var rows = RowWalk<RowHead.Column>(
      priority, queue, after: last, skipsClaimed: false, transaction)
    defer { rows.reset() }
    var sum = OwnerSum()
    var isAtEnd = true
    var seen = 0
    while let row = try rows.nextHead() {
      last = row.id
      let owner = try transaction.owner(row.context, namespace: queue.namespace) ?? .unknown
      sum.add(row.size, of: owner, to: &shares)
      let number = RowID(value: row.id).sequence
      shares.note(number..<number + 1, of: owner, priority, queue.kind)
      seen += 1
      if seen % Self.rowsBetweenLooksAtClock == 0 && transaction.uptime >= deadline {
        isAtEnd = false
        break
      }
    }
    sum.flush(to: &shares)
    shares.count(upTo: last, priority, queue.kind)
    return isAtEnd
  }

  private enum DeadColumn: String, SQLiteColumn {
    case user
    case bytes = "sum(size)"
  }

  private func sharesOfDead(_ namespace: Int) throws(SQLiteError) -> UserShares {
    var shares = UserShares()
    let dead = try transaction.prepare(
      "SELECT \(DeadColumn.list) FROM dead WHERE namespace = :namespace GROUP BY user")
    try dead.bind([":namespace": namespace]).forEachRow(of: DeadColumn.self) {
      shares.add($0.int(.bytes), to: RowOwner(stored: $0.int64(.user)))
    }
    return shares
  }

  /// Takes rows that are about to leave out of their users' shares.
  func discount(_ members: IDRuns, _ queue: QueueID) throws(SQLiteError) {
    guard var shares = state.shares.removeValue(forKey: queue.namespace) else { return }
    var sum = OwnerSum(sign: -1)
    try transaction.forEachRun(of: members, queue, .headsInRange) { (read) throws(SQLiteError) in
      try read.forEachRow(of: RowHead.Column.self) { (row) throws(SQLiteError) in
        let head = RowHead(row)
        guard !RowID.isKept(head.id), shares.isCounted(head.id, queue.kind) else { return }
        let owner = try transaction.owner(head.context, namespace: queue.namespace) ?? .unknown
        sum.add(head.size, of: owner, to: &shares)
      }
    }
    sum.flush(to: &shares)
    state.shares[queue.namespace] = shares
  }

  /// Rows moved between their table and the dead ones: those that were not counted in one would be missed in the other. Rows
  /// that come back are between those of others.
  func forgetIncomplete(_ queue: QueueID) {
    if state.shares[queue.namespace]?.isComplete == false { state.shares[queue.namespace] = nil }
    state.shares[queue.namespace]?.forgetRuns()
  }
}

/// Adds up neighbours of one owner, so that the shares are looked up once for a run of rows.
private struct OwnerSum {
  private let sign: Int
  private var owner: RowOwner?
  private var bytes = 0

  init(sign: Int = 1) { self.sign = sign }

  mutating func add(_ count: Int, of owner: RowOwner, to shares: inout UserShares) {
    if owner != self.owner { flush(to: &shares) }
    self.owner = owner
    bytes += count
  }

  mutating func flush(to shares: inout UserShares) {
    if let owner { sign > 0 ? shares.add(bytes, to: owner) : shares.remove(bytes, from: owner) }
    bytes = 0
  }
}
