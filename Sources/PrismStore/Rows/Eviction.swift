import PrismProtocol
import PrismSQLite

/// Makes room for new reports in a full namespace: users who hold the most give way, the oldest rows first, crashes last.
struct Eviction: PlainOperations {
  /// The bytes that a commit may still store.
  struct Room {
    /// Of the namespace, and of the user.
    var bytes: Int, userBytes: Int

    func fits(_ needed: Int) -> Bool { needed <= bytes && needed <= userBytes }
  }

  private static let spareBytesMax = 1 << 20
  private static let togetherMax = 1024

  let transaction: StoreTransaction

  /// Makes room for a batch if the quota wants that. A user who holds no more than an equal share of the namespace loses
  /// nothing to others. - Parameter batch: of the user that brings reports. - Parameter needed: their bytes.
  func makeRoom(
    for batch: ReportBatch, _ namespace: Int, bytes needed: @autoclosure () -> Int
  ) throws(SQLiteError) -> Room {
    let (quota, owner) = (batch.quota, RowOwner(userID: batch.userID))
    let isBounded = quota.userBytesMax < .max
    guard quota.evictsOldest || isBounded else { return room(quota, owner, namespace) }
    let needed = needed()
    if isBounded { try ShareCount(transaction).count(namespace) }
    guard quota.evictsOldest, !room(quota, owner, namespace).fits(needed) else { return room(quota, owner, namespace) }
    try ShareCount(transaction).count(namespace)
    // Evicts a little more than is needed, so that the next commits need no eviction; but no crash for that.
    let spare = min(min(quota.bytesMax, quota.userBytesMax) / 256, Self.spareBytesMax)
    let limits = FairShares(held: heldByUser(namespace), newcomer: (owner, needed + spare)).limits(quota)
    for priority in [Priority.rest, .realtime] { try cut(limits, priority, namespace) { true } }
    if !room(quota, owner, namespace).fits(needed) {
      try evict(quota, for: (owner, needed), namespace, priorities: Priority.leaving.reversed())
    }
    return room(quota, owner, namespace)
  }

  private func room(_ quota: StoreQuota, _ owner: RowOwner, _ namespace: Int) -> Room {
    let held = bytesHeld(namespace)
    guard quota.userBytesMax < .max else { return Room(bytes: quota.bytesMax - held, userBytes: .max) }
    let heldByUser = state.shares[namespace]?.held(by: owner, of: held) ?? 0
    return Room(bytes: quota.bytesMax - held, userBytes: quota.userBytesMax - heldByUser)
  }

  /// Evicts rows of users over their limit until the quota is kept, or until no more row may leave.
  /// - Parameter newcomer: the user who brings reports, and their bytes; nil: the quota itself is new.
  /// - Parameter isWanted: asked after each slice.
  func evict(
    _ quota: StoreQuota, for newcomer: (owner: RowOwner, bytes: Int)?, _ namespace: Int, priorities: [Priority],
    while isWanted: () -> Bool = { true }
  ) throws(SQLiteError) {
    var stuck: Set<RowOwner> = []
    while isWanted() {
      let held = heldByUser(namespace)
      let limits = FairShares(held: held, stuck: stuck, newcomer: newcomer).limits(quota)
      if limits.isEmpty { return }
      for priority in priorities { try cut(limits, priority, namespace, while: isWanted) }
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
    _ limits: [RowOwner: Int], _ priority: Priority, _ namespace: Int, while isWanted: () -> Bool
  ) throws(SQLiteError) {
    let held = heldByUser(namespace)
    var cut = EvictionCut(excess: [:])
    for (owner, limit) in limits where held[owner, default: 0] > limit { cut.excess[owner] = held[owner]! - limit }
    var isMore = true
    while isMore, !cut.excess.isEmpty, isWanted() {
      isMore = try chooseRows(priority, namespace, into: &cut)
      for queue in QueueID.all(of: namespace) {
        let chosen = cut.takeChosen(queue.kind)
        try transaction.drop(chosen.members, bytes: chosen.bytes, queue, to: .evicted)
      }
    }
  }

  /// One kind's walk, at a row.
  private struct Walk {
    let kind: RowKind
    var rows: RowWalk<RowHead.Column>
    /// nil: at its end.
    var row: RowHead?
    /// No row at or below it is still to come.
    var passed: Int64 { row == nil ? rows.passed : rows.passed - 1 }
  }

  /// - Returns: whether there may be more at this priority.
  private func chooseRows(
    _ priority: Priority, _ namespace: Int, into cut: inout EvictionCut
  ) throws(SQLiteError) -> Bool {
    guard var shares = state.shares.removeValue(forKey: namespace) else { return false }
    defer { state.shares[namespace] = shares }
    var walks: [Walk] = []
    defer { for place in walks.indices { walks[place].rows.reset() } }
    for queue in QueueID.all(of: namespace) {
      let after = cut.excess.keys.map { shares.lastCleared($0, priority, queue.kind) }.min()
      var rows = RowWalk<RowHead.Column>(priority, queue, after: after, transaction)
      walks.append(Walk(kind: queue.kind, rows: rows, row: try rows.nextHead()))
      walks[walks.count - 1].rows = rows
    }
    while cut.count < Self.togetherMax, !cut.excess.isEmpty, let next = Self.oldest(walks), let row = walks[next].row {
      let kind = walks[next].kind
      let known = try transaction.owner(row.context, namespace: namespace) ?? .unknown
      let owner = shares.isCounted(row.id, kind) ? known : .uncounted
      if try !cut.take(row, of: owner, kind) {
        if let last = shares.lastOfOthers(than: cut.excess, after: row.id, priority, kind) {
          walks[next].rows.skip(to: last)
        }
      } else if cut.excess[owner] == nil {
        for kind in RowKind.reports { shares.clear(owner, upTo: row.id - 1, priority, kind) }
      }
      walks[next].row = try walks[next].rows.nextHead()
    }
    for owner in cut.excess.keys {
      for walk in walks { shares.clear(owner, upTo: walk.passed, priority, walk.kind) }
    }
    return walks.contains { $0.row != nil }
  }

  /// The walk whose row is the oldest; nil if all are at their end.
  private static func oldest(_ walks: [Walk]) -> Int? {
    var oldest: Int?
    for place in walks.indices where walks[place].row != nil {
      if oldest.map({ walks[place].rows.passed < walks[$0].rows.passed }) ?? true { oldest = place }
    }
    return oldest
  }
}

/// Rows that are evicted together.
private struct EvictionCut {
  /// The bytes that each user still has to give.
  var excess: [RowOwner: Int]
  /// By kind.
  private var chosen: [(members: IDRuns, bytes: Int)] = RowKind.reports.map { _ in (IDRuns(), 0) }

  init(excess: [RowOwner: Int]) { self.excess = excess }

  var count: Int { chosen.reduce(0) { $0 + $1.members.count } }

  /// - Returns: false if the row's owner has nothing (more) to give.
  mutating func take(_ row: RowHead, of owner: RowOwner, _ kind: RowKind) throws(SQLiteError) -> Bool {
    guard let left = excess[owner] else { return false }
    try chosen[kind.number].members.append(read: row.id)
    chosen[kind.number].bytes += row.size
    excess[owner] = left > row.size ? left - row.size : nil
    return true
  }

  mutating func takeChosen(_ kind: RowKind) -> (members: IDRuns, bytes: Int) {
    defer { chosen[kind.number] = (IDRuns(), 0) }
    return chosen[kind.number]
  }
}
