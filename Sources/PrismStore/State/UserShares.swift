import PrismProtocol

/// The bytes that each user holds of one namespace, metas and payloads together: waiting, claimed and dead.
///
/// It is derived from the rows and kept in memory only. The rows are counted when a quota first asks, and the counts
/// follow each commit from then on; a restart or a failed transaction forgets them. Rows that were not counted yet belong
/// to `RowOwner.uncounted`.
struct UserShares: Sendable {
  private(set) var bytes: [RowOwner: Int] = [:]
  /// All rows are counted; those that come are added.
  var isComplete = false
  /// By kind and priority: the last row that was counted.
  private var counted = basesOfKinds
  /// By user, kind and priority: no waiting row of the user is at or below it, so that eviction looks at each row once.
  private var cleared: [RowOwner: [PriorityValues]] = [:]

  /// By kind and priority: the owners of rows, so that eviction need not read those of others.
  private var runs = RowKind.reports.map { _ in Priority.allCases.map { _ in OwnerRuns() } }

  private static let basesOfKinds = RowKind.reports.map { _ in PriorityValues.bases }

  /// - Parameter held: the bytes of the whole namespace.
  func held(by owner: RowOwner, of held: Int) -> Int {
    owner == .uncounted ? held - bytes.values.reduce(0, +) : bytes[owner, default: 0]
  }

  func isCounted(_ id: Int64, _ kind: RowKind) -> Bool {
    if isComplete { return true }
    guard let priority = RowID(value: id).priority else { return false }
    return counted[kind.number][priority] >= id
  }

  mutating func add(_ count: Int, to owner: RowOwner) { bytes[owner, default: 0] += count }

  /// Counts rows that were stored. - Parameter numbers: the sequence numbers of all of them, behind all others.
  mutating func add(_ count: Int, to owner: RowOwner, _ numbers: Range<Int64>) {
    add(count, to: owner)
    for kind in RowKind.reports {
      for priority in Priority.leaving { note(numbers, of: owner, priority, kind) }
    }
  }

  mutating func remove(_ count: Int, from owner: RowOwner) {
    guard let before = bytes[owner] else { return }
    bytes[owner] = before > count ? before - count : nil
  }

  // MARK: How far walks have come

  func lastCounted(_ priority: Priority, _ kind: RowKind) -> Int64 { counted[kind.number][priority] }

  mutating func count(upTo id: Int64, _ priority: Priority, _ kind: RowKind) {
    counted[kind.number][priority] = id
  }

  func lastCleared(_ owner: RowOwner, _ priority: Priority, _ kind: RowKind) -> Int64 {
    (cleared[owner]?[kind.number] ?? .bases)[priority]
  }

  mutating func clear(_ owner: RowOwner, upTo id: Int64, _ priority: Priority, _ kind: RowKind) {
    let number = kind.number
    let before = lastCleared(owner, priority, kind)
    cleared[owner, default: Self.basesOfKinds][number][priority] = max(before, id)
  }

  mutating func forgetCleared() { cleared = [:] }

  // MARK: Whose rows follow

  /// - Parameter numbers: sequence numbers, behind all others that are known.
  mutating func note(_ numbers: Range<Int64>, of owner: RowOwner, _ priority: Priority, _ kind: RowKind) {
    runs[kind.number][priority.rawValue].add(numbers, of: owner)
  }

  /// The id of the last row behind `id` before which no row is of `owners`; nil: the next row may be.
  func lastOfOthers(than owners: [RowOwner: Int], after id: Int64, _ priority: Priority, _ kind: RowKind) -> Int64? {
    runs[kind.number][priority.rawValue].lastOfOthers(than: owners, after: RowID(value: id).sequence)
      .map { RowID(priority: priority, sequence: $0).value }
  }

  /// Rows came back between others.
  mutating func forgetRuns() {
    for kind in runs.indices { runs[kind] = runs[kind].map { _ in OwnerRuns() } }
  }

  /// These rows wait again.
  mutating func release(_ members: IDRuns, _ kind: RowKind) {
    let number = kind.number
    for run in members.runs {
      guard let priority = RowID(value: run.first).priority else { continue }
      for owner in cleared.keys where cleared[owner]![number][priority] >= run.first {
        cleared[owner]![number][priority] = run.first - 1
      }
    }
  }
}

/// The owners of a table's rows, as far as they are known: rows of one user that follow each other are one run.
private struct OwnerRuns {
  /// In their order. No row of another user is within one, and no row at all between two.
  private var list: [(numbers: Range<Int64>, owner: RowOwner)] = []

  /// When there are more, the older half is forgotten.
  private static let countMax = 1024
  /// Fewer rows are read: to look for the next place costs as much.
  private static let skippedMin: Int64 = 16

  mutating func add(_ numbers: Range<Int64>, of owner: RowOwner) {
    if numbers.isEmpty { return }
    if let last = list.last, last.owner == owner {
      list[list.count - 1].numbers = last.numbers.lowerBound..<numbers.upperBound
    } else {
      if list.count == Self.countMax { list.removeFirst(Self.countMax / 2) }
      list.append((numbers, owner))
    }
  }

  func lastOfOthers(than owners: [RowOwner: Int], after number: Int64) -> Int64? {
    var (first, after) = (0, list.count)
    while first < after {
      let middle = (first + after) / 2
      if list[middle].numbers.upperBound > number { after = middle } else { first = middle + 1 }
    }
    guard first < list.count, list[first].numbers.contains(number) else { return nil }
    let next = list[first...].first { owners[$0.owner] != nil }?.numbers.lowerBound
    let end = next ?? list[list.count - 1].numbers.upperBound
    return end - number > Self.skippedMin ? end - 1 : nil
  }
}

/// Decides which users lose rows when a namespace is full. No user keeps more than an equal share while another needs
/// its own.
struct FairShares {
  /// The bytes that each user holds.
  var held: [RowOwner: Int]
  /// Users that hold nothing that can leave: their rows are in flight, or dead.
  var stuck: Set<RowOwner> = []
  /// The user who brings reports, and their bytes; nil if the quota itself is new.
  var newcomer: (owner: RowOwner, bytes: Int)?

  /// - Returns: the bytes that each user may keep, for users over their limit.
  func limits(_ quota: StoreQuota) -> [RowOwner: Int] {
    var wanted = held
    if let newcomer { wanted[newcomer.owner, default: 0] += newcomer.bytes }
    let fixed = stuck.reduce(0) { $0 + held[$1, default: 0] }
    for owner in stuck { wanted[owner] = newcomer?.owner == owner ? newcomer?.bytes : nil }
    for owner in wanted.keys where isBounded(owner) { wanted[owner] = min(wanted[owner]!, quota.userBytesMax) }
    let level = Self.level(of: Array(wanted.values), fitting: quota.bytesMax - fixed)
    var limits: [RowOwner: Int] = [:]
    for (owner, bytes) in held where !stuck.contains(owner) {
      let brought = newcomer?.owner == owner ? newcomer?.bytes ?? 0 : 0
      let limit = isBounded(owner) ? min(level, quota.userBytesMax) : level
      if bytes + brought > limit { limits[owner] = max(0, limit - brought) }
    }
    return limits.filter { held[$0.key, default: 0] > $0.value }
  }

  /// Whether the user's own bound applies: to the newcomer only; to every user if there is no newcomer.
  private func isBounded(_ owner: RowOwner) -> Bool { newcomer == nil || newcomer?.owner == owner }

  /// The amount that each of `amounts` has to be cut to so that they fit; `Int.max`: they do. An amount below an equal
  /// share leaves the rest of it to the others.
  static func level(of amounts: [Int], fitting bytesMax: Int) -> Int {
    var left = max(0, bytesMax)
    for (index, amount) in amounts.sorted().enumerated() {
      let share = left / (amounts.count - index)
      if amount > share { return share }
      left -= amount
    }
    return .max
  }
}
