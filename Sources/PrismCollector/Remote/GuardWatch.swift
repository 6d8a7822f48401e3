import PrismBase
import PrismOutputs
import PrismProtocol

/// Judges the rollout that is under way each minute, and ends it if its guard says so. All replicas see the same reports; the first
/// one that writes decides.
actor GuardWatch {
  /// Begins the name of who made the changes of the guard; its reason follows.
  static let who = "guard: "
  private static let interval: Duration = .seconds(60), pause: Duration = .seconds(1)
  private static let budget: Duration = .milliseconds(500)

  /// The count of a rollout, and up to which report.
  private struct State {
    let rollout: Int64
    /// When counting began, milliseconds since 1970.
    let begin: Int64
    var cursor: Int64
    var count: GuardCount
    /// The hours that came, by device, namespace and book.
    private var hours = FairPlaces<[String], HourChain>(budget: ReleaseIndex.chainsMax)

    init(rollout: Int64, begin: Int64, _ rule: RolloutGuard) {
      (self.rollout, self.begin, cursor, count) = (rollout, begin, 0, GuardCount(rule))
    }

    /// Counts a report that happened since counting began.
    mutating func take(
      _ stored: StoredReport, _ rollout: Rollout, _ history: RolloutHistory, _ sides: RolloutHistory.Sides
    ) {
      let rule = count.rule
      if stored.type == rule.type {
        let time = stored.happenedTime
        guard time >= begin, (rule.namespace ?? stored.namespace) == stored.namespace,
          let arm = history.arm(of: stored.device, time...time, in: rollout, sides)
        else { return }
        count.note(stored.device, arm)
      }
      guard stored.type == ReleaseReport.type, let report = ReleaseReport(stored), report.beginTime >= begin,
        isNew(report),
        let arm = history.arm(of: report.device, report.beginTime...report.endTime, in: rollout, sides)
      else { return }
      count.take(report, arm)
    }

    private mutating func isNew(_ report: ReleaseReport) -> Bool {
      var isNew = true
      hours.change(
        [report.device, report.namespace, report.book], of: report.namespace, by: report.device, at: report.endTime,
        else: HourChain(), { isNew = $0.add(report) })
      return isNew
    }
  }

  private var state: State?

  /// nil: no guarded rollout is under way.
  func json(of rollout: Rollout) -> JSONValue {
    guard let rule = rollout.rule else { return .null }
    let verdict = state.flatMap { $0.rollout == rollout.id ? $0.count.json : nil } ?? GuardCount(rule).json
    return rule.json.adding(["state": verdict])
  }

  /// Looks once. - Returns: whether there are more reports to read.
  func look(_ collector: Collector) async throws -> Bool {
    guard let remote = collector.remote else { return false }
    let history = await remote.store.rollouts
    guard let rollout = history.active, let rule = rollout.rule, rollout.event.state == .running else {
      if history.active?.rule == nil { state = nil }
      return false
    }
    let begin = history.guardBegin(of: rollout)
    if state?.rollout != rollout.id || state?.begin != begin {
      state = State(rollout: rollout.id, begin: begin, rule)
    }
    let chosen = await remote.choices.choice(for: rollout, of: collector)
    let sides = (holders: try await remote.devices.holders(of: rollout), chosen: chosen)
    let isWhole = try await read(collector, rollout, history, sides)
    guard isWhole, let count = state?.count, count.verdict == .worse else { return !isWhole }
    try await end(rollout, rule, because: count.reason, collector, remote.store)
    return false
  }

  private func end(
    _ rollout: Rollout, _ rule: RolloutGuard, because reason: String, _ collector: Collector,
    _ store: RemoteConfigurationStore
  ) async throws {
    do {
      _ = try await store.change(rule.action == .pause ? .pause : .rollBack, by: Self.who + reason)
    } catch {
      if error.status == 409 { return }  // another replica was first
      throw error
    }
    collector.log.warning(
      "a rollout ended itself: the chosen devices are worse than the others",
      ["rollout": String(rollout.id), "did": rule.action.rawValue, "reason": reason])
  }

  private func read(
    _ collector: Collector, _ rollout: Rollout, _ history: RolloutHistory, _ sides: RolloutHistory.Sides
  ) async throws -> Bool {
    guard var own = state else { return true }
    let (time, started) = (collector.time, collector.time.uptime)
    let newest = try await collector.store.queries.newestID()
    if own.cursor == 0 {
      var filter = ReportFilter(scope: .everything)
      (filter.type, filter.axis, filter.since) = (ReleaseReport.type, .received, own.begin)
      let windows = try await collector.store.queries.windows(filter, nil)
      own.cursor = max(0, (windows.map(\.lowerBound).min() ?? newest + 1) - 1)
    }
    while own.cursor < newest, time.uptime - started < Self.budget {
      var (reports, end) = try await collector.store.reports(
        .everything, of: ReleaseReport.type, after: own.cursor, upTo: newest)
      if let type = own.count.rule.type {
        // The part of both types that ends first; its rows in their order, so that replicas agree.
        let counted = try await collector.store.reports(.everything, of: type, after: own.cursor, upTo: end)
        end = counted.end
        reports = (reports.filter { $0.id <= end } + counted.reports).sorted { $0.id < $1.id }
      }
      for report in reports { own.take(report, rollout, history, sides) }
      own.cursor = end
    }
    if own.cursor >= newest { own.count.end(before: time.unixMilliseconds) }
    state = own
    return own.cursor >= newest
  }

  nonisolated func run(_ collector: Collector) async {
    await collector.time.keepLooking(each: Self.interval, pause: Self.pause) { try await look(collector) }
  }
}

extension RolloutHistory {
  /// When the guard of a rollout begins to count: at its start, or when an operator went on after the guard had stopped it.
  func guardBegin(of rollout: Rollout) -> Int64 {
    let own = events.filter { $0.rollout == rollout.id }
    guard let stopped = own.lastIndex(where: { $0.who.hasPrefix(GuardWatch.who) }), stopped + 1 < own.count else {
      return rollout.begin
    }
    return own[stopped + 1].time
  }

  /// Devices that got what is rolled out, and those of its expression as of now.
  typealias Sides = (holders: Set<String>, chosen: DeviceChoice?)

  /// The side of a device in the whole of a time. One that got it keeps it, though the expression chooses it no more.
  /// - Returns: nil: it may have changed within that time, or the device is chosen and has not got it.
  func arm(
    of device: String, _ time: ClosedRange<Int64>, in rollout: Rollout, _ sides: Sides
  ) -> GuardCount.Arm? {
    let holds = sides.holders.contains(device)
    let chosen = events.first {
      $0.rollout == rollout.id && $0.state == .running
        && (holds && $0.reach.expression != nil || $0.reach.includes(device, of: rollout.id, among: sides.chosen))
    }
    guard let chosen else { return .others }
    if time.lowerBound >= chosen.time { return holds ? .chosen : nil }
    return time.upperBound <= chosen.time ? .others : nil
  }
}
