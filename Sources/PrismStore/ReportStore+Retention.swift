import PrismBase
import PrismProtocol

// Rows that leave because of what the configuration says: quota, age, another version of the app.
extension ReportStore {
  /// Rows that one slice looks at and deletes at the most, so that nobody waits long for the queue.
  static let sliceRowsMax = 5000
  static let evictionRowsMin = 256

  /// Takes what the configuration says of stored rows: clears what another `appVersion` stored, drops payloads over
  /// today's limit (`removed`), and remembers the policies for `maintain`. Namespaces without one are retired: their
  /// rows expire as they would have.
  public func apply(_ policies: [NamespaceName: RetentionPolicy]) throws(StoreError) {
    let before = self.policies
    self.policies = policies
    for (namespace, policy) in policies.sorted(by: { $0.key < $1.key }) {
      guard let number = state.number(of: namespace) else { continue }
      do {
        try transaction { (database) throws(SQLiteError) in
          try clearOtherVersion(number, policy, database)
          try dropLargePayloads(number, policy, database)
          try remember(policy, number, database)
        }
      } catch {
        throw error.storeError
      }
    }
    try rememberRetired(before)
  }

  private static let expirationNote = "expirationDays"

  private func rememberRetired(_ before: [NamespaceName: RetentionPolicy]) throws(StoreError) {
    for (number, namespace) in state.namespaces where policies[namespace] == nil {
      do {
        let days = try transaction { (database) throws(SQLiteError) in
          let noted = try numberNote(Self.expirationNote, number, database)
          let days = before[namespace]?.expirationDays ?? noted ?? RetentionPolicy.expirationDaysStandard
          try remember(days, as: Self.expirationNote, number, database)
          return days
        }
        policies[namespace] = RetentionPolicy(
          expirationDays: days, isUpdateClear: false, appVersion: nil, maxBodyBytes: .max)
      } catch {
        throw error.storeError
      }
    }
  }

  private func numberNote(_ key: String, _ namespace: Int, _ database: StoreDatabase) throws(SQLiteError) -> Int? {
    try note(namespace, key, database).flatMap { Int(String(decoding: $0, as: UTF8.self)) }
  }

  /// What the rows that are stored from now on were stored under.
  func remember(_ policy: RetentionPolicy, _ namespace: Int, _ database: StoreDatabase) throws(SQLiteError) {
    if let version = policy.appVersion, let name = state.namespaces[namespace],
      try note(namespace, "appVersion", database) != Array(version.utf8)
    {
      try write(Note(namespace: name, key: "appVersion", value: Array(version.utf8)), database)
    }
    try remember(policy.maxBodyBytes, as: "maxBodyBytes", namespace, database)
    try remember(policy.expirationDays, as: Self.expirationNote, namespace, database)
  }

  private func remember(
    _ number: Int, as key: String, _ namespace: Int, _ database: StoreDatabase
  ) throws(SQLiteError) {
    guard let name = state.namespaces[namespace], try numberNote(key, namespace, database) != number else { return }
    try write(Note(namespace: name, key: key, value: Array(String(number).utf8)), database)
  }

  /// What waits was stored under another version of the app, and is to go.
  func isCleared(_ namespace: Int, _ policy: RetentionPolicy, _ database: StoreDatabase) throws(SQLiteError) -> Bool {
    guard policy.isUpdateClear, let version = policy.appVersion else { return false }
    return try note(namespace, "appVersion", database).map { $0 != Array(version.utf8) } ?? false
  }

  private func clearOtherVersion(
    _ namespace: Int, _ policy: RetentionPolicy, _ database: StoreDatabase
  ) throws(SQLiteError) {
    guard try isCleared(namespace, policy, database) else { return }
    for queue in ReportKind.allCases.map({ QueueID(namespace: namespace, kind: $0) }) {
      while try dropOldest(queue, Lane.allCases, rowsMax: Self.sliceRowsMax, to: .cleared, database) > 0 {}
    }
  }

  func dropLargePayloads(
    _ namespace: Int, _ policy: RetentionPolicy, _ database: StoreDatabase
  ) throws(SQLiteError) {
    if let before = try numberNote("maxBodyBytes", namespace, database), policy.maxBodyBytes < before {
      let queue = QueueID(namespace: namespace, kind: .payload)
      var (members, bytes) = (IDRuns(), 0)
      let large = try database.statement(.largePayloads(queue))
      large.bind(1, policy.maxBodyBytes)
      try large.forEachRow { (row) throws(SQLiteError) in
        guard state[queue].claimedRun(of: row.int64(0)) == nil else { return }
        try members.append(read: row.int64(0))
        bytes += row.int(1)
      }
      try drop(members, bytes: bytes, queue, to: .removed, database)
    }
  }

  /// Deletes up to `rowsMax` of the oldest waiting rows of these lanes, the first lane first; answers their bytes, or 1
  /// for rows of none, and 0 when no row was left.
  @discardableResult
  private func dropOldest(
    _ queue: QueueID, _ lanes: [Lane], rowsMax: Int, to account: Ledger.Account, _ database: StoreDatabase,
    while isWanted: (SQLiteStatement) -> Bool = { _ in true }
  ) throws(SQLiteError) -> Int {
    var dropped = 0
    for lane in lanes {
      var (members, bytes) = (IDRuns(), 0)
      try walkWaiting(lane, queue, database) { row in
        guard members.count < rowsMax, isWanted(row) else { return false }
        members.append(row.int64(0))
        bytes += row.int(1)
        return true
      }
      try drop(members, bytes: bytes, queue, to: account, database)
      if !members.isEmpty { dropped += max(1, bytes) }
      if members.count == rowsMax { break }
    }
    return dropped
  }

  // MARK: Age

  /// One slice of every namespace's expiry. true: there may be more.
  func expire() throws(StoreError) -> Bool {
    var isMore = false
    for (namespace, policy) in policies.sorted(by: { $0.key < $1.key }) {
      guard let number = state.number(of: namespace) else { continue }
      let cutoff = options.time.unixMilliseconds - Int64(policy.expirationDays) * 86_400_000
      if state[QueueID(namespace: number, kind: .meta)].ledger[.dead]
        + state[QueueID(namespace: number, kind: .payload)].ledger[.dead] > 0
      {
        do {
          try transaction { (database) throws(SQLiteError) in try expireDead(number, before: cutoff, database) }
        } catch {
          throw error.storeError
        }
      }
      for kind in ReportKind.allCases {
        let queue = QueueID(namespace: number, kind: kind)
        guard state[queue].ledger[.waiting] > 0 else { continue }
        do {
          let dropped = try transaction { (database) throws(SQLiteError) in
            try expire(queue, before: cutoff, database)
          }
          isMore = isMore || dropped >= Self.sliceRowsMax
        } catch {
          throw error.storeError
        }
      }
    }
    return isMore
  }

  /// Rows stand in the order of their age, so a lane is looked at up to its first row that is young enough; those that
  /// came late stand in an index.
  func expire(
    _ queue: QueueID, before cutoff: Int64, rowsMax: Int = sliceRowsMax, _ database: StoreDatabase
  ) throws(SQLiteError) -> Int {
    let waiting = state[queue].ledger[.waiting]
    try dropOldest(queue, Lane.allCases, rowsMax: rowsMax, to: .expired, database) { $0.int64(2) < cutoff }
    var late: [(id: Int64, size: Int)] = []
    let rows = try database.statement(.lateRows(queue))
    rows.bind(1, cutoff)
    try rows.forEachRow { row in
      guard late.count < rowsMax, state[queue].claimedRun(of: row.int64(0)) == nil else { return }
      late.append((row.int64(0), row.int(1)))
    }
    var members = IDRuns()
    for row in late.sorted(by: { $0.id < $1.id }) { try members.append(read: row.id) }
    try drop(members, bytes: late.reduce(0) { $0 + $1.size }, queue, to: .expired, database)
    return waiting - state[queue].ledger[.waiting]
  }
}
