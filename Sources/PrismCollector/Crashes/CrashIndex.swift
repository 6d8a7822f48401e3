import PrismBase
import PrismProtocol

/// Groups the crashes of a store, in memory: it reads on from where it came to, each time that it is asked, for a bounded time.
/// After a start it reads all crashes again.
actor CrashIndex {
  private static let buildsMax = 10_000, buildIDBytesMax = 128
  /// Of all groups. With the crashes that are known, and builds, the index takes some 40 MiB.
  static let bytesMax = 24 * 1_048_576
  private static let budget: Duration = .milliseconds(500)

  /// A group has one for each namespace, so that a team's view is a choice of them.
  struct Key: Hashable, Sendable {
    let fingerprint: String, namespace: String
  }

  /// The build of a module in one namespace.
  private struct Build: PlacedValue {
    let module: String
    var crashes = 0
    var weight: Int { 1 }
    var count: Int { crashes }
  }

  private var places: FairPlaces<Key, CrashGroup>
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
  /// The builds that crashed.
  private var builds = FairPlaces<Key, Build>(budget: buildsMax)

  private var isRegrouping = false

  init(symbols: Symbolizer? = nil, bytesMax: Int = CrashIndex.bytesMax, groupsMax: Int = 5000) {
    self.symbols = symbols
    places = FairPlaces(budget: bytesMax, leastWeight: bytesMax / groupsMax)
  }

  /// The groups of a reader's namespaces, by fingerprint.
  func groups(_ scope: Scope = .everything) -> [String: CrashGroup] {
    var groups: [String: CrashGroup] = [:]
    for (key, place) in places.all where scope.has(key.namespace) {
      if groups[key.fingerprint]?.join(place.value) == nil { groups[key.fingerprint] = place.value }
    }
    return groups
  }

  /// The groups that have crashes of further namespaces, by fingerprint.
  func shared(beyond scope: Scope) -> Set<String> {
    Set(places.all.keys.lazy.filter { !scope.has($0.namespace) }.map(\.fingerprint))
  }

  /// Crashes of groups that gave up their place.
  func leftOut(_ scope: Scope = .everything) -> LeftOut { LeftOut(byNamespace: places.leftOut(scope)) }
  /// The bytes of its groups.
  var bytes: Int { places.weight }
  /// By fingerprint.
  var since: [String: CrashSince] { judgement.since }

  /// A crash of a group, as it is stored; nil: they are gone.
  func sample(
    of group: CrashGroup, _ scope: Scope, in store: any PacketStore
  ) async throws(StoreFailure) -> CrashReport? {
    for id in group.samples {
      if let stored = try await store.report(id, scope) { return await named([CrashReport(stored)])[0] }
    }
    return nil
  }

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
      if !builds.leftOut.isEmpty || !changed.isDisjoint(with: builds.all.keys.map(\.fingerprint)) { beginAgain(rules) }
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
      let newest = (judged.isEmpty ? [:] : places.all).reduce(into: [String: Int64]()) { newest, place in
        newest[place.key.fingerprint] = max(newest[place.key.fingerprint] ?? 0, place.value.value.lastReport)
      }
      if judgement.isLate(judged, newest) { beginAgain(rules) }
      judgement.watch(judged)
      let isWhole = try await read(store, time)
      if isWhole { isRegrouping = false }
      return .success(isWhole)
    } catch { return .failure(error) }
  }

  /// Reports were erased: the crashes that are left are read again.
  func forget() async {
    while let reading { _ = await reading.value }
    beginAgain(rules)
    moved = [:]
  }

  private func beginAgain(_ rules: CrashRules) {
    isRegrouping = isRegrouping || cursor > 0
    (known, cursor, self.rules, judgement.since) = (RecentCrashes(), 0, rules, [:])
    (places, builds) = (places.empty, builds.empty)
  }

  /// The newest state of each group, by its fingerprint. A state of earlier rules stays under its own.
  func newest(_ states: [CrashState], in store: any PacketStore) async throws(StoreFailure) -> [String: CrashState] {
    var newest: [String: CrashState] = [:]
    let present = files.isEmpty ? [] : Set(places.all.keys.map(\.fingerprint))
    for state in states {
      let fingerprint = try await fingerprint(of: state, in: store, present)
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
  /// - Parameter present: the fingerprints of groups.
  func fingerprint(
    of state: CrashState, in store: any PacketStore, _ present: Set<String> = []
  ) async throws(StoreFailure) -> String {
    let isPresent =
      state.facts.rules == CrashFrameTable.version && (files.isEmpty || present.contains(state.fingerprint))
    guard !isPresent, let sample = state.facts.sample else { return state.fingerprint }
    if moved[sample] == nil, let stored = try await store.report(sample, .everything) {
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
        .everything, of: CrashReport.type, after: cursor, upTo: newest, hasPayloads: true)
      for crash in await named(page.map(CrashReport.init)) { add(crash) }
      cursor = end
    }
    return cursor >= newest
  }

  /// The modules of frames by build id, with the crashes that have them.
  func builds(_ scope: Scope) -> [String: (module: String, crashes: Int)] {
    builds.all.reduce(into: [:]) { found, build in
      guard scope.has(build.key.namespace) else { return }
      found[build.key.fingerprint, default: (build.value.value.module, 0)].crashes += build.value.value.crashes
    }
  }

  /// The builds that crashed and have no debug file, those with most crashes first.
  func builds(
    _ scope: Scope = .everything, without files: [String: SymbolFolder.File]
  ) -> [(key: String, value: (module: String, crashes: Int))] {
    builds(scope).filter { files[$0.key] == nil }.sorted { ($1.value.crashes, $0.key) < ($0.value.crashes, $1.key) }
  }

  private func named(_ crashes: [CrashReport]) async -> [CrashReport] {
    guard let symbols, !files.isEmpty else { return crashes }
    let names = await symbols.names(of: Set(crashes.flatMap { $0.frames.compactMap(\.place) }))
    guard !names.isEmpty else { return crashes }
    var crashes = crashes
    for place in crashes.indices { crashes[place].name(by: names) }
    return crashes
  }

  private func note(_ crash: CrashReport) {
    var noted: Set<String> = []
    for frame in crash.frames {
      guard let id = frame.buildID?.cut(atBytes: Self.buildIDBytesMax), noted.insert(id).inserted else { continue }
      builds.change(
        Key(fingerprint: id, namespace: crash.namespace), of: crash.namespace, by: crash.device, at: crash.report,
        else: Build(module: (frame.module ?? "").cut(atBytes: Self.buildIDBytesMax))
      ) { $0.crashes += crash.weight }
    }
  }

  private func add(_ crash: CrashReport) {
    var crash = crash
    note(crash)
    let path = rules.path(of: crash)
    crash.fingerprint = path.last ?? crash.fingerprint
    if let other = known.exchange(&crash) {
      guard crash.saysMore(than: other) else { return }
      judgement.count(other, -1)
      places.change(Key(other)) { group in
        // A group that gave up its place begins with its next crash.
        guard group.firstReport <= other.report else { return true }
        group.remove(other)
        return group.count > 0
      }
    }
    judgement.count(crash, 1)
    places.change(
      Key(crash), of: crash.namespace, by: crash.device, at: crash.report, else: CrashGroup(crash),
      keeping: { [since = judgement.since] in since[$0.fingerprint] != nil },
      { $0.add(crash, by: path.dropLast()) })
  }
}

extension CrashIndex.Key {
  fileprivate init(_ crash: CrashReport) { (fingerprint, namespace) = (crash.fingerprint.text, crash.namespace) }
}
