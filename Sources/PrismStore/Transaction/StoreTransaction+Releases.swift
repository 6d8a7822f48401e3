import PrismProtocol
import PrismSQLite

// Rows of a ring that may leave.
extension StoreTransaction {
  private static let releasedTogetherMax = 1000

  /// Claims find these rows from now on. - Parameter rule: the trigger's name.
  func letGo(_ members: IDRuns, _ queue: QueueID, by rule: String) throws(SQLiteError) {
    var release = ReleaseRecord(number: state.nextRelease, queue: queue, rule: rule, members: members)
    // Those that come one by one after a trigger fired are of one record.
    if let last = state[queue].releases.last, last.rule == rule, last.members.count < Self.releasedTogetherMax,
      let end = last.members.runs.last?.last, let first = members.runs.first?.first, end < first
    {
      release = last
      for id in members.ids { release.members.append(id) }
      state[queue].releases.removeLast()
    }
    state[queue].releases.append(release)
    try statement(.packets(.writeRelease)).run(inserting: release)
  }

  /// Claims find these rows no more.
  func hold(_ members: IDRuns, _ queue: QueueID) throws(SQLiteError) {
    let ids = Set(members.ids)
    for place in state[queue].releases.indices.reversed() {
      var release = state[queue].releases[place]
      release.members = release.members.subtracting(ids)
      if release.members.count == state[queue].releases[place].members.count { continue }
      if release.members.isEmpty {
        state[queue].releases.remove(at: place)
        try statement(.packets(.deleteRelease)).run([":number": release.number])
      } else {
        state[queue].releases[place] = release
        try statement(.packets(.writeRelease)).run(inserting: release)
      }
    }
  }
}
