import PrismBase
import PrismConfig

/// Looks each minute for events that receivers want. Each rule has a mark, which moves in the transaction that stores its
/// notices. So each event has one notice, whenever a collector ends, and however many replicas look.
struct NoticeWatch: Sendable {
  static let interval: Duration = .seconds(60), pause: Duration = .seconds(1)
  private static let (hour, week): (Int64, Int64) = (3_600_000, 7 * 86_400_000)

  let collector: Collector

  private var receivers: [CollectorConfiguration.Notice] { collector.options.notices }
  private var store: NoticeStore { collector.access.page.notices }

  /// Looks once. - Returns: whether there is more to read.
  func look() async throws(StoreFailure) -> Bool {
    var isMoreDue = false
    if receivers.contains(where: { $0.events.contains(.newGroup) || $0.events.contains(.regressedGroup) }) {
      isMoreDue = try await groups()
    }
    for receiver in receivers {
      if receiver.events.contains(.silentDevice) { try await silent(receiver) }
      if receiver.events.contains(.count) { try await count(receiver) }
    }
    try await retire()
    return isMoreDue
  }

  /// A replica with the newer configuration may have a receiver that is not known here: it tries its notices within a day.
  private func retire() async throws(StoreFailure) {
    let day = collector.time.unixMilliseconds - 24 * Self.hour
    let count = try await store.retire(besides: receivers.map(\.name), dueBefore: day)
    guard count > 0 else { return }
    collector.log.warning(
      "notices of receivers that are not configured any more are dead letters", ["notices": String(count)])
  }

  // MARK: Groups of crashes

  /// A group is new whose first crash came behind the mark. The watch of crashes sees those that regressed.
  private func groups() async throws(StoreFailure) -> Bool {
    let groups = try await CrashWatch(collector).groups()
    guard let newest = groups.newest else { return true }
    for receiver in receivers where receiver.events.contains(.newGroup) {
      let name = "\(Notice.Event.newGroup.rawValue)/\(receiver.name)"
      let mark = try await store.mark(name)
      guard let mark, mark < newest else {
        // Another replica may have seen more. The mark goes back only where the ids do, as in a database that was replaced.
        let isAhead = if let mark { try await collector.store.queries.newestID() < mark } else { true }
        if isAhead { _ = try await store.move(name, from: mark, to: newest, adding: []) }
        continue
      }
      let found = groups.all.values.filter { $0.firstReport > mark && $0.firstReport <= newest }
        .sorted { $0.firstReport < $1.firstReport }
      let notice = Notice(
        .newGroup, to: receiver.name, key: "\(mark) \(newest)", time: collector.time.unixMilliseconds,
        title: found.count == 1 ? "A new crash" : "\(found.count) new crashes", count: found.count,
        items: found.map(\.item))
      _ = try await store.move(name, from: mark, to: newest, adding: found.isEmpty ? [] : [notice])
    }
    return false
  }

  /// For those who want to know that a group regressed; stored in the transaction that notes it.
  static func regressed(
    _ state: CrashState, _ group: CrashGroup, to receivers: [CollectorConfiguration.Notice], at now: Int64
  ) -> [Notice] {
    receivers.filter { $0.events.contains(.regressedGroup) }.map {
      Notice(
        .regressedGroup, to: $0.name, key: "\(state.fingerprint) \(state.changedTime)", time: now,
        title: "A resolved crash is back", items: [group.item])
    }
  }

  // MARK: Devices

  /// The mark is the time that devices were asked about last: a device that was heard of between it and the next is silent now.
  private func silent(_ receiver: CollectorConfiguration.Notice) async throws(StoreFailure) {
    let name = "\(Notice.Event.silentDevice.rawValue)/\(receiver.name)"
    let now = collector.time.unixMilliseconds
    let since = try await store.silentSince(
      Int64(receiver.silentHours) * Self.hour, now: now, uptime: collector.time.uptime)
    let mark = try await store.mark(name)
    guard let mark, mark < since else {
      // The clock was ahead, more than those of replicas are apart.
      let isAhead = mark.map { $0 > since + Self.hour } ?? true
      if isAhead { _ = try await store.move(name, from: mark, to: since, adding: []) }
      return
    }
    let devices = try await DeviceSummary.all(in: collector.store)
    let found = devices.filter { $0.seenTime > max(mark, since - Self.week) && $0.seenTime <= since }
      .sorted { ($0.seenTime, $0.device) < ($1.seenTime, $1.device) }
    let notice = Notice(
      .silentDevice, to: receiver.name, key: String(mark), time: now,
      title: "\(found.count == 1 ? "A device is" : "\(found.count) devices are") silent for \(receiver.silentHours) h",
      count: found.count, items: found.map { .init("", object: $0.device) })
    _ = try await store.move(name, from: mark, to: since, adding: found.isEmpty ? [] : [notice])
  }

  // MARK: Counts

  /// The mark is 1 while the count is over its limit: the notice is of the change. The first look of a rule only sets it.
  private func count(_ receiver: CollectorConfiguration.Notice) async throws(StoreFailure) {
    let now = collector.time.unixMilliseconds
    var filter = ReportFilter(scope: .fleet)
    (filter.type, filter.axis, filter.kind) = (receiver.countType, .received, "meta")
    (filter.since, filter.until) = (now - Int64(receiver.countMinutes) * 60_000, now + 1)
    let scan = ReportScan(queries: collector.store.queries, time: collector.time)
    let grouping = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime, countsRepeats: true)
    let found = try await scan.counts(filter, grouping, within: nil).counts.reduce(0) { $0 + $1.count }
    let rule = "\(receiver.countType) \(receiver.countOver) \(receiver.countMinutes)"
    let name = "\(Notice.Event.count.rawValue)/\(receiver.name)/\(rule)"
    let (mark, value): (Int64?, Int64) = (try await store.mark(name), found > receiver.countOver ? 1 : 0)
    guard mark != value else { return }
    let notice = Notice(
      .count, to: receiver.name, key: String(now), time: now,
      title: "\(found) reports of \(receiver.countType) in \(receiver.countMinutes) min, over \(receiver.countOver)",
      count: found, items: [])
    _ = try await store.move(name, from: mark, to: value, adding: mark == 0 ? [notice] : [])
  }

  func run() async {
    await collector.time.keepLooking(each: Self.interval, pause: Self.pause, look)
  }
}

extension CrashGroup {
  fileprivate var item: Notice.Item {
    let parts: [String?] = [
      reason.isEmpty ? "(no reason)" : reason, frame.map { "in \($0)" }, versions.keys.sorted().last,
    ]
    return .init(parts.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " "), object: fingerprint)
  }
}
