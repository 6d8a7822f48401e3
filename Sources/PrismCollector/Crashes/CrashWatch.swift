import PrismBase
import PrismConfig

/// Notices that crashes which were resolved are back, or were ignored long enough: for the page, and each minute without a reader.
struct CrashWatch: Sendable {
  /// Between two looks, and between the parts of one that reads many crashes: half a second is read at a time.
  static let interval: Duration = .seconds(60), pause: Duration = .seconds(1)

  let collector: Collector
  private let index: CrashIndex
  private let states: CrashStateStore

  init(_ collector: Collector) {
    (self.collector, index) = (collector, collector.access.page.crashes)
    states = collector.access.page.crashStates
  }

  /// The groups of crashes, and what was said about them.
  struct Groups {
    /// Both by fingerprint.
    let all: [String: CrashGroup], states: [String: CrashState]
    /// The newest crash; nil: there are more to read.
    let newest: Int64?
    let leftOut: LeftOut
    /// Fingerprints of groups that have crashes of further namespaces.
    var shared: Set<String> = []
  }

  /// Groups what came, and notes what crashes changed.
  func groups() async throws(StoreFailure) -> Groups {
    let (isWhole, known) = try await refresh()
    let (all, newest) = (await index.groups(), await index.cursor)
    return Groups(
      all: all, states: try await states(all, of: known), newest: isWhole ? newest : nil,
      leftOut: await index.leftOut())
  }

  /// The same for a reader. The state of a group is of all its crashes: a reader of a part of them does not get it.
  func groups(of scope: Scope) async throws(StoreFailure) -> Groups {
    let whole = try await groups()
    guard scope.isLimited else { return whole }
    let (all, beyond) = (await index.groups(scope), await index.shared(beyond: scope))
    let shared = whole.newest == nil ? Set(all.keys) : beyond.intersection(all.keys)
    return Groups(
      all: all, states: whole.states.filter { all[$0.key] != nil && !shared.contains($0.key) }, newest: whole.newest,
      leftOut: await index.leftOut(scope), shared: shared)
  }

  /// Groups the crashes that came since, by the rules of operators.
  /// - Returns: whether all crashes are read, and the states of the store.
  func refresh() async throws(StoreFailure) -> (isWhole: Bool, states: [CrashState]) {
    await collector.access.page.followErasures(now: collector.time.uptime)
    let all = try await states.all()
    let rules = try await rules(all)
    return (try await index.refresh(collector.store, time: collector.time, rules: rules, states: all), all)
  }

  /// The rules of operators. Fingerprints of earlier rules of grouping are those of the present ones.
  private func rules(_ all: [CrashState]) async throws(StoreFailure) -> CrashRules {
    var moved: [String: String] = [:]
    for state in all where state.facts.rules != CrashFrameTable.version {
      moved[state.fingerprint] = try await index.fingerprint(of: state, in: collector.store)
    }
    var rules = CrashRules()
    for state in all.sorted(by: { $0.changedTime < $1.changedTime }) {
      guard let rule = state.facts.rule else { continue }
      let fingerprint = moved[state.fingerprint] ?? state.fingerprint
      if case .into(let other) = rule {
        // By the present rules both may be one group anyway.
        let target = moved[other] ?? other
        if target != fingerprint { rules.rules[fingerprint] = .into(target) }
      } else {
        rules.rules[fingerprint] = rule
      }
    }
    return rules
  }

  /// The states by the fingerprints of the groups, once what crashes changed is noted.
  /// - Parameter all: the states of the store.
  func states(_ groups: [String: CrashGroup], of all: [CrashState]) async throws(StoreFailure) -> [String: CrashState] {
    let now = collector.time.unixMilliseconds
    var found = try await index.newest(all, in: collector.store)
    for (fingerprint, since) in await index.since {
      guard let group = groups[fingerprint], var state = found[fingerprint], state.isSameChange(as: since.state) else {
        continue
      }
      let isTimeOver = await states.isTimeOver(state, now: now, uptime: collector.time.uptime)
      let condition = since.condition(isTimeOver: isTimeOver)
      guard condition != state.condition else { continue }
      try await note(state, condition, group, now)
      (state.condition, state.regressedTime) = (condition, now)
      found[fingerprint] = state
    }
    let conditions = found.values.map(\.condition)
    collector.counts.set(
      .init(resolved: conditions.count { $0 == .resolved }, regressed: conditions.count { $0 == .regressed }))
    return found
  }

  private func note(
    _ state: CrashState, _ condition: CrashState.Condition, _ group: CrashGroup, _ now: Int64
  ) async throws(StoreFailure) {
    let notices =
      condition == .regressed ? NoticeWatch.regressed(state, group, to: collector.options.notices, at: now) : []
    guard try await states.mark(state, as: condition, at: now, adding: notices) else { return }
    if condition == .regressed {
      collector.log.warning("a resolved crash is back", ["crash": state.fingerprint, "resolvedBy": state.who])
    } else {
      collector.log.info("an ignored crash is open again", ["crash": state.fingerprint, "ignoredBy": state.who])
    }
  }

  /// Looks once. Crashes are read where a group is resolved or ignored, or those that were read are to be grouped again. With a
  /// server of debug files they are read in any case.
  /// - Returns: whether there are more crashes to read.
  func look() async throws(StoreFailure) -> Bool {
    let all = try await states.all()
    let isOutdated = await index.isOutdated()
    let isDue = try await states([:], of: all).values.contains(where: \.isJudged)
    guard isOutdated || isDue || collector.options.debuginfod != nil else { return false }
    return try await groups().newest == nil
  }

  /// Each look takes the index of that time: an erasure begins another one.
  func run() async {
    await collector.time.keepLooking(each: Self.interval, pause: Self.pause) { [collector] in
      try await CrashWatch(collector).look()
    }
  }
}
