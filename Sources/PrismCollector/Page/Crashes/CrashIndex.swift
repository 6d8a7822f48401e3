import PrismBase

/// Groups the crashes of a store, in memory: it reads on from where it came to, each time that it is asked, for a bounded time.
/// After a start it reads all crashes again.
actor CrashIndex {
  static let groupsMax = 5000
  private static let budget: Duration = .milliseconds(500)
  private static let pageReports = 200
  /// Ids that one question reads at most: a day that is being written may have no index.
  private static let idsMax: Int64 = 1 << 20

  private(set) var groups: [String: CrashGroup] = [:]
  /// Crashes whose group found no room.
  private(set) var leftOut = 0
  /// A report with a payload arrives twice, once of each kind. These are the newest of them, so that each counts once.
  private var known = RecentCrashes()
  /// The id of the last report that was read: crashes up to it are grouped.
  private(set) var cursor: Int64 = 0
  /// Fingerprints by the present rules of reports that states of earlier rules note.
  private var moved: [Int64: String] = [:]
  /// The rules by which the crashes are grouped.
  private(set) var rules = CrashRules()
  private var reading: Task<Result<Bool, StoreFailure>, Never>?

  /// Reads the crashes that came since; by other rules than before, all crashes again. Questions at the same time share one
  /// reading.
  /// - Returns: whether all are read.
  func refresh(
    _ store: any PacketStore, time: any TimeSource, rules: CrashRules = CrashRules()
  ) async throws(StoreFailure) -> Bool {
    while let reading {
      let result = await reading.value
      if rules == self.rules { return try result.get() }
    }
    if rules != self.rules {
      (groups, leftOut, known, cursor, self.rules) = ([:], 0, RecentCrashes(), 0, rules)
    }
    let task = Task { () -> Result<Bool, StoreFailure> in
      defer { reading = nil }
      do throws(StoreFailure) { return .success(try await read(store, time)) } catch { return .failure(error) }
    }
    reading = task
    return try await task.value.get()
  }

  /// The fingerprint of a state's group. A state of other rules notes a report: its group by the present rules counts.
  func fingerprint(of state: CrashState, in store: any PacketStore) async throws(StoreFailure) -> String {
    guard state.facts.rules != CrashFrameTable.version, let sample = state.facts.sample else {
      return state.fingerprint
    }
    if let known = moved[sample] { return known }
    guard let stored = try await store.report(sample) else { return state.fingerprint }
    let fingerprint = CrashReport(stored).fingerprint.text
    moved[sample] = fingerprint
    return fingerprint
  }

  private func read(_ store: any PacketStore, _ time: any TimeSource) async throws(StoreFailure) -> Bool {
    let started = time.uptime
    var filter = ReportFilter()
    (filter.type, filter.limit, filter.hasPayloads) = (CrashReport.type, Self.pageReports, true)
    let newest = try await store.queries?.newestID() ?? cursor
    while cursor < newest, time.uptime - started < Self.budget {
      let end = min(newest, cursor + Self.idsMax)
      (filter.after, filter.before) = (cursor, end + 1)
      let page = try await store.page(filter)
      for report in page { add(CrashReport(report)) }
      // A page ends behind some bytes, too.
      cursor = page.last?.id ?? end
    }
    return cursor >= newest
  }

  private func add(_ crash: CrashReport) {
    var crash = crash
    let path = rules.path(of: crash)
    crash.fingerprint = path.last ?? crash.fingerprint
    if let other = known.exchange(crash) {
      crash.firstRow = min(crash.firstRow, other.firstRow)
      guard crash.saysMore(than: other) else { return }
      groups[other.fingerprint.text]?.remove(other)
      if groups[other.fingerprint.text]?.count == 0 { groups[other.fingerprint.text] = nil }
    }
    let key = crash.fingerprint.text
    guard groups[key] != nil || groups.count < Self.groupsMax else {
      leftOut += 1
      return
    }
    groups[key, default: CrashGroup(crash)].add(crash, by: path.dropLast())
  }
}
