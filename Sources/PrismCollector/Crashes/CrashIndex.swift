import PrismBase

/// Groups the crashes of a store, in memory: it reads on from where it came to, each time that it is asked, for a bounded time.
/// After a start it reads all crashes again.
actor CrashIndex {
  private static let buildsMax = 10_000
  private static let budget: Duration = .milliseconds(500)

  private var places: CrashPlaces
  /// The crashes since groups were resolved or ignored.
  private var judgement = CrashJudgement()
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

  init(_ scope: Scope, symbols: Symbolizer? = nil, groupsMax: Int = 5000) {
    (self.scope, self.symbols, places) = (scope, symbols, CrashPlaces(groupsMax: groupsMax))
  }

  var groups: [String: CrashGroup] { places.groups }
  /// Crashes of groups that gave up their place.
  var leftOut: Int { places.leftOut }
  /// By fingerprint.
  var since: [String: CrashSince] { judgement.since }

  /// Reads the crashes that came since; by other rules than before, all crashes again. Questions at the same time share one
  /// reading.
  /// - Parameter states: those that crashes are judged by.
  /// - Returns: whether all are read.
  func refresh(
    _ store: any PacketStore, time: any TimeSource, rules: CrashRules = CrashRules(), states: [CrashState] = []
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
    let task = Task(executorPreference: BackgroundExecutor.shared) { await self.readOn(store, time, states) }
    reading = task
    return try await task.value.get()
  }

  private func readOn(
    _ store: any PacketStore, _ time: any TimeSource, _ states: [CrashState]
  ) async -> Result<Bool, StoreFailure> {
    defer { reading = nil }
    do throws(StoreFailure) {
      let judged = try await newest(states, in: store).filter { $0.value.isJudged }
      if judgement.isLate(judged, groups) { beginAgain(rules) }
      judgement.watch(judged)
      let isWhole = try await read(store, time)
      if isWhole { isRegrouping = false }
      return .success(isWhole)
    } catch { return .failure(error) }
  }

  private func beginAgain(_ rules: CrashRules) {
    isRegrouping = isRegrouping || cursor > 0
    (known, cursor, self.rules, builds) = (RecentCrashes(), 0, rules, [:])
    (places, judgement.since) = (CrashPlaces(groupsMax: places.groupsMax), [:])
  }

  /// The newest state of each group, by its fingerprint. A state of earlier rules stays under its own.
  func newest(_ states: [CrashState], in store: any PacketStore) async throws(StoreFailure) -> [String: CrashState] {
    var newest: [String: CrashState] = [:]
    for state in states {
      let fingerprint = try await fingerprint(of: state, in: store)
      if newest[fingerprint]?.changedTime ?? .min <= state.changedTime { newest[fingerprint] = state }
    }
    return newest
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
    if moved[sample] == nil, let stored = try await store.report(sample, scope) {
      moved[sample] = await named([CrashReport(stored)])[0].fingerprint.text
    }
    guard let key = moved[sample] else { return state.fingerprint }
    // A report of a merged group may have the key of another one.
    return state.facts.rule == nil ? rules.target(of: key) : key
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
    let key = path.last?.text ?? ""
    // The text that the group has, so that all of them share it.
    crash.fingerprint = CrashFingerprint(text: groups[key]?.fingerprint ?? key)
    if let other = known.exchange(&crash) {
      guard crash.saysMore(than: other) else { return }
      judgement.count(other, -1)
      places.remove(other)
    }
    judgement.count(crash, 1)
    places.add(crash, by: path.dropLast(), keeping: judgement.since)
  }
}

/// The groups that have a place in memory.
struct CrashPlaces: Sendable {
  let groupsMax: Int
  private(set) var groups: [String: CrashGroup] = [:]
  /// Crashes of groups that gave up their place.
  private(set) var leftOut = 0

  init(groupsMax: Int) { self.groupsMax = groupsMax }

  /// - Parameters:
  ///   - path: the fingerprints of the rules that led it to its group.
  ///   - judged: groups that keep their place, by fingerprint.
  mutating func add(_ crash: CrashReport, by path: ArraySlice<CrashFingerprint>, keeping judged: [String: CrashSince]) {
    let key = crash.fingerprint.text
    if groups[key] == nil, groups.count >= groupsMax { makeRoom(judged) }
    groups[key, default: CrashGroup(crash)].add(crash, by: path)
  }

  mutating func remove(_ crash: CrashReport) {
    let key = crash.fingerprint.text
    // A group that gave up its place begins with its next crash.
    guard let begin = groups[key]?.firstReport, begin <= crash.report else { return }
    groups[key]?.remove(crash)
    if groups[key]?.count == 0 { groups[key] = nil }
  }

  /// Groups give up a twentieth of all places: of the namespaces that have more than a fair share, those that crashed longest ago.
  private mutating func makeRoom(_ judged: [String: CrashSince]) {
    let wanted = groupsMax - max(1, groupsMax / 20)
    var sizes: [String: Int] = [:]
    for namespace in groups.values.lazy.flatMap(\.namespaces) { sizes[namespace, default: 0] += 1 }
    let share = wanted / max(1, sizes.count)
    let order = groups.values.sorted { $0.lastReport < $1.lastReport }
    // If groups of several namespaces or with a state take all places, those that crashed longest ago go.
    for isFair in [true, false] where groups.count >= groupsMax {
      for group in order where groups.count > wanted && groups[group.fingerprint] != nil {
        let isOver = group.namespaces.allSatisfy { sizes[$0] ?? 0 > share }
        guard !isFair || isOver && judged[group.fingerprint] == nil else { continue }
        for namespace in group.namespaces { sizes[namespace, default: 0] -= 1 }
        groups[group.fingerprint] = nil
        leftOut += group.count
      }
    }
  }
}
