import PrismBase
import PrismProtocol

// What each user holds of a namespace: counted when a quota first asks, kept from then on.
extension ReportStore {
  /// Past this much time the counting is continued by the next commit that needs it, or by `maintain`.
  private static let countingMax: Duration = .milliseconds(200)

  /// Counts what was not counted yet: once a run, a walk over the namespace's rows without their bodies.
  func countShares(_ namespace: Int, _ database: StoreDatabase) throws(SQLiteError) {
    guard state.shares[namespace]?.isComplete != true else { return }
    var shares: UserShares
    if let begun = state.shares.removeValue(forKey: namespace) {
      shares = begun
    } else {
      shares = try sharesOfDead(namespace, database)
    }
    shares.forgetCleared()  // rows that come to be known may be among those passed over
    let deadline = options.time.uptime + Self.countingMax
    shares.isComplete = true
    for kind in ReportKind.allCases {
      for lane in Lane.allCases where shares.isComplete {
        let queue = QueueID(namespace: namespace, kind: kind)
        shares.isComplete = try count(lane, queue, into: &shares, until: deadline, database)
      }
    }
    state.shares[namespace] = shares
  }

  /// - Returns: whether it came to the end.
  private func count(
    _ lane: Lane, _ queue: QueueID, into shares: inout UserShares, until deadline: Duration, _ database: StoreDatabase
  ) throws(SQLiteError) -> Bool {
    let rows = try database.statement(.walkSizes(queue))
    defer { rows.reset() }
    var last = shares.lastCounted(lane, queue.kind)
    rows.bind(1, last)
    rows.bind(2, lane.idEnd)
    var sum = OwnerSum()
    var isAtEnd = true
    var seen = 0
    while try rows.step() {
      let id = rows.int64(0)
      guard id > last else { throw .nonsense }
      last = id
      sum.add(rows.int(1), of: try owner(rows.int64(4), namespace: queue.namespace, database) ?? .unknown, to: &shares)
      seen += 1
      if seen % 4096 == 0 && options.time.uptime >= deadline {
        isAtEnd = false
        break
      }
    }
    sum.flush(to: &shares)
    shares.count(upTo: last, lane, queue.kind)
    return isAtEnd
  }

  private func sharesOfDead(_ namespace: Int, _ database: StoreDatabase) throws(SQLiteError) -> UserShares {
    var shares = UserShares()
    let dead = try database.connection.prepare("SELECT user, sum(size) FROM dead WHERE namespace = ? GROUP BY user")
    dead.bind(1, namespace)
    try dead.forEachRow { shares.add($0.int(1), to: RowOwner(stored: $0.int64(0))) }
    return shares
  }

  /// Goes on counting where a quota asked and the rows were too many for one commit. true: there is more to do.
  func countMoreShares() throws(StoreError) -> Bool {
    guard let namespace = state.shares.first(where: { !$0.value.isComplete })?.key else { return false }
    try reading { (database) throws(SQLiteError) in try countShares(namespace, database) }
    return true
  }

  /// Takes rows that are about to leave out of their users' shares.
  func discount(_ members: IDRuns, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) {
    guard var shares = state.shares.removeValue(forKey: queue.namespace) else { return }
    let read = try database.statement(.ownersInRange(queue))
    var sum = OwnerSum(sign: -1)
    for run in members.runs {
      read.bind(1, run.first)
      read.bind(2, run.last)
      try read.forEachRow { (row) throws(SQLiteError) in
        guard shares.isCounted(row.int64(0), queue.kind) else { return }
        let owner = try owner(row.int64(2), namespace: queue.namespace, database) ?? .unknown
        sum.add(row.int(1), of: owner, to: &shares)
      }
    }
    sum.flush(to: &shares)
    state.shares[queue.namespace] = shares
  }

  /// Rows wait again: claims and eviction look at them again.
  func release(_ members: IDRuns, _ queue: QueueID) {
    state[queue].release(members)
    state.shares[queue.namespace]?.release(members, queue.kind)
  }

  /// Rows moved between their table and the dead ones: what was not counted in the one would not be in the other.
  func forgetIncompleteShares(_ queue: QueueID) {
    if state.shares[queue.namespace]?.isComplete == false { state.shares[queue.namespace] = nil }
  }
}

/// Adds up neighbours of one owner, so that the shares are looked up once a run of rows.
private struct OwnerSum {
  var sign = 1
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
