import PrismProtocol
import PrismSQLite

/// Clears what an app stored under an older version (`appVersion: auto`, `isUpdateClear`). Each user's apps are its own: no
/// user can clear another's rows.
struct AppUpdates: PlainOperations {
  let transaction: StoreTransaction

  /// Before rows of `app` are stored: another version than before is an update.
  func note(_ app: AppVersion, userID: UInt32, _ namespace: Int) throws(SQLiteError) {
    var versions = try versions(of: namespace)
    guard versions.note(app, userID: userID, sequence: state.nextSequence) else { return }
    try write(versions, of: namespace)
  }

  /// Does one slice of clearing. - Returns: whether there may be more to do.
  static func clearSlice(in file: DatabaseFile) throws(StoreError) -> Bool {
    // Rows that are brought over keep their age: they are cleared with the others, afterwards.
    guard file.memory.state.salvage.files.isEmpty else { return false }
    if file.memory.state.apps.clearing == nil {
      let hasMore = try file.read { (transaction) throws(SQLiteError) in try AppUpdates(transaction).begin() }
      guard hasMore else { return false }
    }
    try file.write { (transaction) throws(SQLiteError) in try AppUpdates(transaction).clearSlice() }
    return true
  }

  /// - Returns: whether there is an app with older rows.
  private func begin() throws(SQLiteError) -> Bool {
    for namespace in state.names.namespaces.keys {
      guard let next = try versions(of: namespace).next else { continue }
      state.apps.clearing = UpdateClearing(namespace, next)
      return true
    }
    return false
  }

  private func clearSlice() throws(SQLiteError) {
    guard var clearing = state.apps.clearing else { return }
    state.apps.clearing = nil
    if let walk = clearing.walks.popLast() {
      if let rest = try clear(walk, &clearing) { clearing.walks.append(rest) }
      state.apps.clearing = clearing
    } else {
      var versions = try versions(of: clearing.namespace)
      versions.cleared(clearing.app.name, userID: clearing.userID, before: clearing.before)
      try write(versions, of: clearing.namespace)
    }
  }

  private typealias Walk = (queue: QueueID, priority: Priority, after: Int64)

  /// - Returns: what is left of the walk; nil: nothing is.
  private func clear(_ walk: Walk, _ clearing: inout UpdateClearing) throws(SQLiteError) -> Walk? {
    var rows = RowWalk<RowHead.Column>(walk.priority, walk.queue, after: walk.after, transaction)
    var (heads, isMore): ([RowHead], Bool) = ([], true)
    while heads.count < Retention.sliceRowsMax {
      guard let row = try rows.nextHead(), RowID(value: row.id).sequence < clearing.before else {
        isMore = false
        break
      }
      heads.append(row)
    }
    rows.reset()
    var (members, bytes) = (IDRuns(), 0)
    for row in heads where try isOlder(row, walk.queue, &clearing) {
      try members.append(read: row.id)
      bytes += row.size
    }
    try transaction.drop(members, bytes: bytes, walk.queue, to: .cleared)
    return isMore ? (walk.queue, walk.priority, rows.passed) : nil
  }

  private func isOlder(
    _ row: RowHead, _ queue: QueueID, _ clearing: inout UpdateClearing
  ) throws(SQLiteError) -> Bool {
    let namespace = clearing.namespace
    guard try transaction.owner(row.context, namespace: namespace) == RowOwner(userID: clearing.userID) else {
      return false
    }
    guard row.context > 0 else { return clearing.isOlder(try body(row.id, queue)) }
    if let verdict = clearing.verdicts[row.context] { return verdict }
    let verdict = clearing.isOlder(try transaction.members(ofContext: row.context, namespace: namespace) ?? [])
    clearing.verdicts[row.context] = verdict
    return verdict
  }

  /// A row without a context carries the common information itself.
  private func body(_ id: Int64, _ queue: QueueID) throws(SQLiteError) -> [UInt8] {
    try transaction.read(id, queue) { $0.bytes(.body) } ?? []
  }

  // MARK: The note

  private func versions(of namespace: Int) throws(SQLiteError) -> AppVersions {
    if let known = state.apps.versions[namespace] { return known }
    let read = AppVersions(note: try transaction.note(namespace, AppVersions.key))
    state.apps.versions[namespace] = read
    return read
  }

  private func write(_ versions: AppVersions, of namespace: Int) throws(SQLiteError) {
    try transaction.write(versions.note, AppVersions.key, namespace)
    state.apps.versions[namespace] = versions
  }
}
