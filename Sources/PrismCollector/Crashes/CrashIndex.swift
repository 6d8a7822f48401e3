import PrismBase

/// Groups the crashes of a store, in memory: it reads on from where it came to, each time that it is asked, for a bounded time.
/// After a start it reads all crashes again.
actor CrashIndex {
  static let groupsMax = 5000
  private static let buildsMax = 10_000
  private static let budget: Duration = .milliseconds(500)

  private(set) var groups: [String: CrashGroup] = [:]
  /// Crashes whose group found no room.
  private(set) var leftOut = 0
  /// A report with a payload arrives twice, once of each kind. These are the newest of them, so that each counts once.
  private var known = RecentCrashes()
  /// The id of the last report that was read: crashes up to it are grouped.
  private(set) var cursor: Int64 = 0
  /// Fingerprints by the present rules of reports that states of earlier rules note.
  private var moved: [Int64: String] = [:]
  private(set) var rules = CrashRules()
  private var reading: Task<Result<Bool, StoreFailure>, Never>?
  /// nil: frames stay as they are.
  private let symbols: Symbolizer?
  /// The debug files that frames were named by.
  private var files: [String: SymbolFolder.File] = [:]
  /// The modules of frames by build id, with the crashes that have them.
  private(set) var builds: [String: (module: String, crashes: Int)] = [:]

  private var isRegrouping = false

  private let scope: Scope

  init(_ scope: Scope, symbols: Symbolizer? = nil) { (self.scope, self.symbols) = (scope, symbols) }

  /// Reads the crashes that came since; by other rules than before, all crashes again. Questions at the same time share one
  /// reading.
  /// - Returns: whether all are read.
  func refresh(
    _ store: any PacketStore, time: any TimeSource, rules: CrashRules = CrashRules()
  ) async throws(StoreFailure) -> Bool {
    var files: [String: SymbolFolder.File] = [:]
    if let symbols { files = await symbols.files() }
    while let reading {
      let result = await reading.value
      if rules == self.rules { return try result.get() }
    }
    if rules != self.rules { beginAgain(rules) }
    if files != self.files {
      let changed = Set(files.keys).union(self.files.keys).filter { files[$0] != self.files[$0] }
      self.files = files
      moved = [:]
      // Beyond the builds that are known, any of them may have crashed.
      if builds.count >= Self.buildsMax || changed.contains(where: { builds[$0] != nil }) { beginAgain(rules) }
    }
    let task = Task(executorPreference: BackgroundExecutor.shared) { await self.readOn(store, time) }
    reading = task
    return try await task.value.get()
  }

  private func readOn(_ store: any PacketStore, _ time: any TimeSource) async -> Result<Bool, StoreFailure> {
    defer { reading = nil }
    do throws(StoreFailure) {
      let isWhole = try await read(store, time)
      if isWhole { isRegrouping = false }
      return .success(isWhole)
    } catch { return .failure(error) }
  }

  private func beginAgain(_ rules: CrashRules) {
    isRegrouping = isRegrouping || cursor > 0
    (groups, leftOut, known, cursor, self.rules, builds) = ([:], 0, RecentCrashes(), 0, rules, [:])
  }

  /// Whether crashes that were read are to be grouped again, since rules or debug files changed.
  func isOutdated() async -> Bool {
    guard !isRegrouping, cursor > 0, let symbols else { return isRegrouping }
    return await symbols.files() != files
  }

  /// The fingerprint of a state's group. A state notes a report. If the state is of other rules, or its group is gone, which
  /// debug files may have named since, the group of this report counts.
  func fingerprint(of state: CrashState, in store: any PacketStore) async throws(StoreFailure) -> String {
    let isPresent = state.facts.rules == CrashFrameTable.version && (files.isEmpty || groups[state.fingerprint] != nil)
    guard !isPresent, let sample = state.facts.sample else { return state.fingerprint }
    if let known = moved[sample] { return known }
    guard let stored = try await store.report(sample, scope) else { return state.fingerprint }
    let fingerprint = await named([CrashReport(stored)])[0].fingerprint.text
    moved[sample] = fingerprint
    return fingerprint
  }

  private func read(_ store: any PacketStore, _ time: any TimeSource) async throws(StoreFailure) -> Bool {
    let started = time.uptime
    let newest = try await store.queries.newestID()
    while cursor < newest, time.uptime - started < Self.budget {
      let (page, end) = try await store.reports(
        scope, of: CrashReport.type, after: cursor, upTo: newest, hasPayloads: true)
      for crash in await named(page.map(CrashReport.init)) { add(crash) }
      cursor = end
    }
    return cursor >= newest
  }

  /// The builds that crashed and have no debug file, those with most crashes first.
  func builds(without files: [String: SymbolFolder.File]) -> [(key: String, value: (module: String, crashes: Int))] {
    builds.filter { files[$0.key] == nil }.sorted { ($1.value.crashes, $0.key) < ($0.value.crashes, $1.key) }
  }

  private func named(_ crashes: [CrashReport]) async -> [CrashReport] {
    guard let symbols, !files.isEmpty else { return crashes }
    let names = await symbols.names(of: Set(crashes.flatMap { $0.frames.compactMap(\.place) }))
    guard !names.isEmpty else { return crashes }
    var crashes = crashes
    for place in crashes.indices { crashes[place].name(by: names) }
    return crashes
  }

  private func note(_ frames: [CrashFrame]) {
    var noted: Set<String> = []
    for frame in frames {
      guard let id = frame.buildID, noted.insert(id).inserted else { continue }
      guard builds[id] != nil || builds.count < Self.buildsMax else { continue }
      builds[id, default: (frame.module ?? "", 0)].crashes += 1
    }
  }

  private func add(_ crash: CrashReport) {
    var crash = crash
    note(crash.frames)
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
