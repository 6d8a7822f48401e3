import PrismBase

/// Sums what apps did by version and day, in memory: it reads on from where it came to, each time that it is asked, for a bounded
/// time. After a start it reads all such reports again.
actor ReleaseIndex {
  static let releasesMax = 2000
  /// Devices are remembered by release and day; further ones count in the sums only.
  private static let placesMax = 2_000_000
  private static let daysMax: Int64 = 90
  private static let budget: Duration = .milliseconds(500)
  static let day: Int64 = 86_400_000

  struct Release: Hashable, Sendable {
    let namespace: String, app: String, version: String
  }

  /// One day, or several.
  struct Sum: Sendable {
    var seconds = 0, sessions = 0, crashedSessions = 0, crashes = 0
    /// In the hours with a crash.
    var crashedSeconds = 0
    /// Numbers of devices.
    var devices: Set<Int32> = [], crashed: Set<Int32> = []

    mutating func add(_ use: ReleaseReport.Use) {
      (seconds, sessions) = (seconds + use.seconds, sessions + use.sessions)
      (crashedSessions, crashes) = (crashedSessions + use.crashedSessions, crashes + use.crashes)
      crashedSeconds += use.crashes > 0 ? use.seconds : 0
    }

    mutating func add(_ other: Sum) {
      (seconds, sessions, crashes) = (seconds + other.seconds, sessions + other.sessions, crashes + other.crashes)
      crashedSessions += other.crashedSessions
      crashedSeconds += other.crashedSeconds
      devices.formUnion(other.devices)
      crashed.formUnion(other.crashed)
    }
  }

  /// The hours that came of a device.
  private struct Chain {
    /// Numbers without a gap, and the days on which the first and the last of these hours ended.
    struct Run {
      var first: (number: Int, day: Int64), last: (number: Int, day: Int64)
    }

    /// Ascending: the numbers between two of them were lost.
    private(set) var runs: [Run] = []
    /// The days of hours whose chain of packets is broken.
    var broken: Set<Int64> = []

    mutating func add(_ hour: (number: Int, day: Int64)) {
      let next = (runs.lastIndex { $0.first.number <= hour.number } ?? -1) + 1
      guard next == 0 || runs[next - 1].last.number < hour.number else { return }
      let joinsNext = next < runs.count && runs[next].first.number == hour.number + 1
      if next > 0, runs[next - 1].last.number == hour.number - 1 {
        runs[next - 1].last = joinsNext ? runs.remove(at: next).last : hour
      } else if joinsNext {
        runs[next].first = hour
      } else {
        runs.insert(Run(first: hour, last: hour), at: next)
      }
    }

    func hasDays(before oldest: Int64) -> Bool {
      runs.contains { $0.last.day <= oldest } || broken.contains { $0 <= oldest }
    }

    mutating func forget(before oldest: Int64) {
      runs.removeAll { $0.last.day <= oldest }
      broken = broken.filter { $0 > oldest }
    }

    var places: Int { runs.count + broken.count }

    /// The hours that were lost in some days, or on the edge of them; nil: all came.
    func missing(_ days: ClosedRange<Int64>) -> Int? {
      let lost = zip(runs, runs.dropFirst()).reduce(0) { sum, pair in
        let gap = min(pair.0.last.day, pair.1.first.day)...max(pair.0.last.day, pair.1.first.day)
        return sum + (days.overlaps(gap) ? pair.1.first.number - pair.0.last.number - 1 : 0)
      }
      return lost > 0 || broken.contains(where: days.contains) ? lost : nil
    }
  }

  private struct Stream: Hashable {
    let namespace: String, device: Int32, book: String
  }

  private var days: [Release: [Int64: Sum]] = [:]
  private var chains: [Stream: Chain] = [:]
  private var numbers: [String: Int32] = [:]
  private var places = 0
  /// Uses whose release, or devices that, found no place.
  private(set) var leftOut = 0
  private(set) var cursor: Int64 = 0
  private var reading: Task<Result<Bool, StoreFailure>, Never>?

  /// Of the reports that it has.
  private let scope: Scope

  init(_ scope: Scope) { self.scope = scope }

  /// Reads the reports that came since. Questions at the same time share one reading. - Returns: whether all are read.
  func refresh(_ store: any PacketStore, time: any TimeSource) async throws(StoreFailure) -> Bool {
    let task = reading ?? Task(executorPreference: BackgroundExecutor.shared) { await self.readOn(store, time) }
    reading = task
    return try await task.value.get()
  }

  private func readOn(_ store: any PacketStore, _ time: any TimeSource) async -> Result<Bool, StoreFailure> {
    defer { reading = nil }
    do throws(StoreFailure) { return .success(try await read(store, time)) } catch { return .failure(error) }
  }

  private func read(_ store: any PacketStore, _ time: any TimeSource) async throws(StoreFailure) -> Bool {
    let (started, oldest) = (time.uptime, time.unixMilliseconds / Self.day - Self.daysMax)
    let newest = try await store.queries.newestID()
    while cursor < newest, time.uptime - started < Self.budget {
      let (reports, end) = try await store.reports(scope, of: ReleaseReport.type, after: cursor, upTo: newest)
      for report in reports.compactMap(ReleaseReport.init) where report.endTime / Self.day > oldest { add(report) }
      cursor = end
    }
    forget(before: oldest)
    return cursor >= newest
  }

  private func forget(before oldest: Int64) {
    for (release, byDay) in days where byDay.keys.contains(where: { $0 <= oldest }) {
      for (day, sum) in byDay where day <= oldest { places -= sum.devices.count }
      let kept = byDay.filter { $0.key > oldest }
      days[release] = kept.isEmpty ? nil : kept
    }
    for (stream, chain) in chains where chain.hasDays(before: oldest) {
      var kept = chain
      kept.forget(before: oldest)
      places -= chain.places - kept.places
      chains[stream] = kept.places == 0 ? nil : kept
    }
  }

  private func add(_ report: ReleaseReport) {
    let day = report.endTime / Self.day
    let device = number(of: report.device)
    if let device, !report.isFurther {
      let stream = Stream(namespace: report.namespace, device: device, book: report.book)
      places -= chains[stream]?.places ?? 0
      if places < Self.placesMax {
        chains[stream, default: Chain()].add((report.number, day))
        if report.chainIsBroken { chains[stream]?.broken.insert(day) }
      }
      places += chains[stream]?.places ?? 0
    }
    for use in report.uses {
      let release = Release(namespace: report.namespace, app: use.app, version: use.version)
      guard days[release] != nil || days.count < Self.releasesMax else {
        leftOut += 1
        continue
      }
      days[release, default: [:]][day, default: Sum()].add(use)
      guard let device, places < Self.placesMax else { continue }
      if days[release]?[day]?.devices.insert(device).inserted == true { places += 1 }
      if use.crashes > 0 { days[release]?[day]?.crashed.insert(device) }
    }
  }

  private func number(of device: String) -> Int32? {
    if let known = numbers[device] { return known }
    guard places < Self.placesMax else {
      leftOut += 1
      return nil
    }
    numbers[device] = Int32(numbers.count)
    return numbers[device]
  }

  // MARK: Asking

  /// The days of releases. - Parameter range: of numbers of days.
  func sums(namespace: String?, app: String?, _ range: ClosedRange<Int64>) -> [Release: [Int64: Sum]] {
    days.filter { (namespace ?? $0.key.namespace) == $0.key.namespace && (app ?? $0.key.app) == $0.key.app }
      .mapValues { $0.filter { range.contains($0.key) } }.filter { !$0.value.isEmpty }
  }

  /// Hours that were lost on their way, by the number of the device; 0: the chain of its packets is broken, and how much is missing
  /// is not known.
  func missing(namespace: String?, _ range: ClosedRange<Int64>) -> [Int32: Int] {
    var found: [Int32: Int] = [:]
    for (stream, chain) in chains where (namespace ?? stream.namespace) == stream.namespace {
      if let lost = chain.missing(range) { found[stream.device, default: 0] += lost }
    }
    return found
  }
}
