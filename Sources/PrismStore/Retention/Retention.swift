import PrismProtocol
import PrismSQLite

/// Removes rows that the configuration no longer keeps: another version of the app, a smaller limit, their age.
struct Retention: StoreOperations {
  /// Rows that one slice looks at and deletes at most, so that other work on the store's queue does not wait long.
  static let sliceRowsMax = 5000
  private static let dayMilliseconds: Int64 = 86_400_000

  /// The names of the notes that record the policy under which a namespace's rows were stored.
  private enum NoteKey: String { case appVersion, maxBodyBytes, expirationDays }

  let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  // MARK: A new policy

  /// Clears rows that another `appVersion` stored, drops payloads over the new limit, and notes the policy.
  func apply(_ policy: RetentionPolicy, _ namespace: Int) throws(SQLiteError) {
    if try isCleared(namespace, policy) { try clear(namespace) }
    try dropLargePayloads(namespace, policy)
    try note(policy, namespace)
  }

  /// Notes when the rows of a namespace that is no longer configured expire: at the same age as before.
  /// - Parameter before: the policy until now, if this run knows it.
  func retire(_ namespace: Int, _ before: RetentionPolicy?) throws(SQLiteError) -> RetentionPolicy {
    let noted = try number(.expirationDays, namespace)
    let days = before?.expirationDays ?? noted ?? RetentionPolicy.expirationDaysStandard
    try note(days, .expirationDays, namespace)
    return RetentionPolicy(expirationDays: days, isUpdateClear: false, appVersion: nil, maxBodyBytes: .max)
  }

  /// Notes the policy under which new rows are stored from now on.
  func note(_ policy: RetentionPolicy, _ namespace: Int) throws(SQLiteError) {
    if let version = policy.appVersion, try self.version(namespace) != Array(version.utf8) {
      try write(Array(version.utf8), .appVersion, namespace)
    }
    try note(policy.maxBodyBytes, .maxBodyBytes, namespace)
    try note(policy.expirationDays, .expirationDays, namespace)
  }

  private func note(_ number: Int, _ key: NoteKey, _ namespace: Int) throws(SQLiteError) {
    guard try self.number(key, namespace) != number else { return }
    try write(Array(String(number).utf8), key, namespace)
  }

  private func write(_ value: [UInt8], _ key: NoteKey, _ namespace: Int) throws(SQLiteError) {
    guard let name = state.names.namespaces[namespace] else { return }
    try transaction.write(Note(namespace: name, key: key.rawValue, value: value))
  }

  private func version(_ namespace: Int) throws(SQLiteError) -> [UInt8]? {
    try transaction.note(namespace, NoteKey.appVersion.rawValue)
  }

  private func number(_ key: NoteKey, _ namespace: Int) throws(SQLiteError) -> Int? {
    try transaction.note(namespace, key.rawValue).flatMap { Int(String(decoding: $0, as: UTF8.self)) }
  }

  // MARK: Another version, a smaller limit

  /// Whether the waiting rows were stored under another version of the app, and are to be cleared.
  func isCleared(_ namespace: Int, _ policy: RetentionPolicy) throws(SQLiteError) -> Bool {
    guard policy.isUpdateClear, let version = policy.appVersion else { return false }
    return try self.version(namespace).map { $0 != Array(version.utf8) } ?? false
  }

  private func clear(_ namespace: Int) throws(SQLiteError) {
    for queue in QueueID.all(of: namespace) {
      while try dropOldest(queue, rowsMax: Self.sliceRowsMax, to: .cleared) > 0 {}
    }
  }

  func dropLargePayloads(_ namespace: Int, _ policy: RetentionPolicy) throws(SQLiteError) {
    guard let before = try number(.maxBodyBytes, namespace), policy.maxBodyBytes < before else { return }
    for queue in QueueID.all(of: namespace) where queue.kind.hasPayload {
      var large: [(id: Int64, size: Int)] = []
      for table in state[queue].segments.tables(queue) {
        let rows = try transaction.statement(.rows(.largePayloads, table))
        rows.bind(":max", policy.maxBodyBytes)
        try rows.forEachRow(of: RowHead.Column.self) { row in
          guard state[queue].leftRun(of: row.int64(.id)) == nil else { return }
          large.append((row.int64(.id), row.int(.size)))
        }
      }
      try transaction.drop(large, queue, to: .removed)
    }
  }

  // MARK: Age

  func cutoff(_ policy: RetentionPolicy) -> Int64 {
    transaction.unixMilliseconds - Int64(policy.expirationDays) * Self.dayMilliseconds
  }

  /// Drops rows that were created before `cutoff`. Rows are in the order of their age, so each priority is read up to
  /// its first row that is young enough. Rows that came late are in an index.
  /// - Returns: the number of dropped rows.
  func expire(_ queue: QueueID, before cutoff: Int64, rowsMax: Int = sliceRowsMax) throws(SQLiteError) -> Int {
    let waiting = state[queue].ledger[.waiting]
    try dropOldest(queue, rowsMax: rowsMax, to: .expired) { $0.createdTime < cutoff }
    var late: [(id: Int64, size: Int)] = []
    for table in state[queue].segments.tables(queue) {
      let rows = try transaction.statement(.rows(.late, table))
      rows.bind(":cutoff", cutoff)
      try rows.forEachRow(of: RowHead.Column.self) { row in
        guard late.count < rowsMax, state[queue].leftRun(of: row.int64(.id)) == nil else { return }
        late.append((row.int64(.id), row.int(.size)))
      }
    }
    try transaction.drop(late, queue, to: .expired)
    return waiting - state[queue].ledger[.waiting]
  }

  /// Drops up to `rowsMax` of the oldest waiting rows, the first priority first. - Returns: how many.
  @discardableResult
  private func dropOldest(
    _ queue: QueueID, rowsMax: Int, to account: Ledger.Account, while isWanted: (RowHead) -> Bool = { _ in true }
  ) throws(SQLiteError) -> Int {
    var dropped = 0
    for priority in Priority.allCases {
      var (members, bytes) = (IDRuns(), 0)
      try transaction.walkWaiting(priority, queue) { row in
        guard members.count < rowsMax, isWanted(row) else { return false }
        members.append(row.id)
        bytes += row.size
        return true
      }
      try transaction.drop(members, bytes: bytes, queue, to: account)
      dropped += members.count
      if members.count == rowsMax { break }
    }
    return dropped
  }
}
