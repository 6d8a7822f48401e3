import PrismProtocol

// Room for new reports in a namespace that is full: who holds most gives way, the oldest rows first and crashes last.
extension ReportStore {
  /// What a commit may still store.
  struct Room {
    /// Of the namespace, and of the user.
    var bytes: Int, userBytes: Int

    func fits(_ needed: Int) -> Bool { needed <= bytes && needed <= userBytes }
  }

  /// Makes room for a batch where the quota wants that. A user who holds no more than an equal share of the namespace
  /// loses nothing to the others.
  func makeRoom(for batch: ReportBatch, namespace: Int, _ database: StoreDatabase) throws(SQLiteError) -> Room {
    let (quota, owner) = (batch.quota, RowOwner(userID: batch.userID))
    let isBounded = quota.userBytesMax < .max
    guard quota.evictsOldest || isBounded else { return room(quota, owner, namespace) }
    // A row with a payload is stored as two, each with the meta.
    let needed = batch.rows.reduce(0) { sum, row in
      sum + row.metaBytes + (row.payload.map { row.metaBytes + $0.count } ?? 0)
    }
    if isBounded { try countShares(namespace, database) }
    guard quota.evictsOldest, !room(quota, owner, namespace).fits(needed) else { return room(quota, owner, namespace) }
    try countShares(namespace, database)
    // Some more than is needed, so that the next commits need none; but no crash for that.
    let spare = min(min(quota.bytesMax, quota.userBytesMax) / 256, Self.spareBytesMax)
    let limits = FairShares(held: heldByUser(namespace), newcomer: (owner, needed + spare)).limits(quota)
    for lane in [Lane.rest, .realtime] { try cut(limits, lane, namespace, database) { true } }
    if !room(quota, owner, namespace).fits(needed) {
      try evict(quota, for: (owner, needed), namespace, lanes: Lane.allCases.reversed(), database)
    }
    return room(quota, owner, namespace)
  }

  private static let spareBytesMax = 1 << 20
  /// Rows that are deleted together.
  private static let evictedTogetherMax = 1024

  private func room(_ quota: StoreQuota, _ owner: RowOwner, _ namespace: Int) -> Room {
    let held = bytesHeld(namespace)
    guard quota.userBytesMax < .max else { return Room(bytes: quota.bytesMax - held, userBytes: .max) }
    let heldByUser = state.shares[namespace]?.held(by: owner, of: held) ?? 0
    return Room(bytes: quota.bytesMax - held, userBytes: quota.userBytesMax - heldByUser)
  }

  // No closure: each call of one that is the actor's asks where it runs, and this is asked with every batch.
  private func bytesHeld(_ namespace: Int) -> Int {
    state[QueueID(namespace: namespace, kind: .meta)].bytes + state[QueueID(namespace: namespace, kind: .payload)].bytes
  }

  /// Cuts whoever holds too much until the quota is kept, or nothing is left that may leave.
  /// - Parameter newcomer: brings so many bytes; nil: the quota itself is new.
  /// - Parameter isWanted: asked after each slice.
  func evict(
    _ quota: StoreQuota, for newcomer: (owner: RowOwner, bytes: Int)?, _ namespace: Int, lanes: [Lane],
    _ database: StoreDatabase, while isWanted: () -> Bool = { true }
  ) throws(SQLiteError) {
    var stuck: Set<RowOwner> = []
    while isWanted() {
      let held = heldByUser(namespace)
      let limits = FairShares(held: held, stuck: stuck, newcomer: newcomer).limits(quota)
      if limits.isEmpty { return }
      for lane in lanes { try cut(limits, lane, namespace, database, while: isWanted) }
      let after = heldByUser(namespace)
      let stillOver = limits.filter { after[$0.key, default: 0] > $0.value }.keys
      if stillOver.isEmpty { return }
      stuck.formUnion(stillOver)
    }
  }

  private func heldByUser(_ namespace: Int) -> [RowOwner: Int] {
    guard let shares = state.shares[namespace] else { return [:] }
    var held = shares.bytes
    if !shares.isComplete { held[.uncounted] = shares.held(by: .uncounted, of: bytesHeld(namespace)) }
    return held
  }

  /// Evicts the oldest waiting rows of the users in `limits`, metas and payloads in the order of their ids, until each
  /// holds no more than its limit.
  private func cut(
    _ limits: [RowOwner: Int], _ lane: Lane, _ namespace: Int, _ database: StoreDatabase, while isWanted: () -> Bool
  ) throws(SQLiteError) {
    let held = heldByUser(namespace)
    var cut = Cut(excess: [:])
    for (owner, limit) in limits where held[owner, default: 0] > limit { cut.excess[owner] = held[owner]! - limit }
    var isMore = true
    while isMore, !cut.excess.isEmpty, isWanted() {
      isMore = try chooseRows(lane, namespace, into: &cut, database)
      for kind in ReportKind.allCases {
        let chosen = cut.takeChosen(kind)
        try drop(chosen.members, bytes: chosen.bytes, QueueID(namespace: namespace, kind: kind), to: .evicted, database)
      }
    }
  }

  /// Rows to be evicted together.
  private struct Cut {
    /// What each user still has to give.
    var excess: [RowOwner: Int]
    private var chosen: [(members: IDRuns, bytes: Int)] = [(IDRuns(), 0), (IDRuns(), 0)]

    init(excess: [RowOwner: Int]) { self.excess = excess }

    var count: Int { chosen[0].members.count + chosen[1].members.count }

    /// - Returns: false where the row's owner has nothing (more) to give.
    mutating func take(_ id: Int64, _ size: Int, of owner: RowOwner, _ kind: ReportKind) throws(SQLiteError) -> Bool {
      guard let left = excess[owner] else { return false }
      try chosen[QueueID.number(of: kind)].members.append(read: id)
      chosen[QueueID.number(of: kind)].bytes += size
      excess[owner] = left > size ? left - size : nil
      return true
    }

    mutating func takeChosen(_ kind: ReportKind) -> (members: IDRuns, bytes: Int) {
      defer { chosen[QueueID.number(of: kind)] = (IDRuns(), 0) }
      return chosen[QueueID.number(of: kind)]
    }
  }

  /// One kind's walk, at a row.
  private struct Walk {
    let kind: ReportKind
    var rows: WaitingRows
    /// nil: at its end.
    var row: SQLiteStatement?
    var id: Int64 { rows.passed }
    /// No row at or below it is still to come.
    var passed: Int64 { row == nil ? rows.passed : rows.passed - 1 }
  }

  /// - Returns: whether there may be more in this lane.
  private func chooseRows(
    _ lane: Lane, _ namespace: Int, into cut: inout Cut, _ database: StoreDatabase
  ) throws(SQLiteError) -> Bool {
    guard var shares = state.shares.removeValue(forKey: namespace) else { return false }
    defer { state.shares[namespace] = shares }
    var walks: [Walk] = []
    defer { for walk in walks { walk.rows.reset() } }
    for kind in ReportKind.allCases {
      let after = cut.excess.keys.map { shares.lastCleared($0, lane, kind) }.min() ?? LaneValues.bases[lane]
      let queue = QueueID(namespace: namespace, kind: kind)
      var rows = try WaitingRows(lane, queue, after: after, state[queue], database)
      walks.append(Walk(kind: kind, rows: rows, row: try rows.next()))
      walks[walks.count - 1].rows = rows
    }
    while cut.count < Self.evictedTogetherMax, !cut.excess.isEmpty,
      let next = walks.indices.filter({ walks[$0].row != nil }).min(by: { walks[$0].id < walks[$1].id }),
      let row = walks[next].row
    {
      let (id, kind) = (walks[next].id, walks[next].kind)
      let known = try owner(row.int64(4), namespace: namespace, database) ?? .unknown
      let owner = shares.isCounted(id, kind) ? known : .uncounted
      if try cut.take(id, row.int(1), of: owner, kind), cut.excess[owner] == nil {
        for kind in ReportKind.allCases { shares.clear(owner, upTo: id - 1, lane, kind) }
      }
      walks[next].row = try walks[next].rows.next()
    }
    for owner in cut.excess.keys {
      for walk in walks { shares.clear(owner, upTo: walk.passed, lane, walk.kind) }
    }
    return walks.contains { $0.row != nil }
  }
}
