import PrismBase

/// Sums what apps did by version and day, in memory: it reads on from where it came to, each time that it is asked, for a bounded
/// time. After a start it reads all such reports again.
actor ReleaseIndex {
  static let releasesMax = 2000
  /// Devices are remembered by release and day; further ones count in the sums only.
  private static let placesMax = 2_000_000
  private static let devicesMax = 500_000
  /// Of hours: a chain without a gap takes one.
  static let chainsMax = 300_000
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

  private struct Stream: Hashable {
    let namespace: String, device: Int32, book: String
  }

  private struct Days: PlacedValue {
    var sums: [Int64: Sum] = [:]
    /// Uses of it.
    var count = 0
    var weight: Int { 1 }
  }

  private var days = FairPlaces<Release, Days>(budget: releasesMax)
  private var chains = FairPlaces<Stream, HourChain>(budget: chainsMax)
  private var numbers: [String: Int32] = [:]
  private var places = 0
  /// Devices that found no place.
  private var unnumbered = 0
  private(set) var cursor: Int64 = 0
  private var reading: Task<Result<Bool, StoreFailure>, Never>?

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
      let (reports, end) = try await store.reports(
        .everything, of: ReleaseReport.type, after: cursor, upTo: newest)
      for report in reports.compactMap(ReleaseReport.init) where report.endTime / Self.day > oldest { add(report) }
      cursor = end
    }
    forget(before: oldest)
    return cursor >= newest
  }

  /// Reports were erased: those that are left are read again.
  func forget() async {
    while let reading { _ = await reading.value }
    (days, chains, numbers) = (days.empty, chains.empty, [:])
    (places, unnumbered, cursor) = (0, 0, 0)
  }

  private func forget(before oldest: Int64) {
    for release in days.all.filter({ $0.value.value.sums.keys.contains { $0 <= oldest } }).keys {
      days.change(release) { days in
        days.sums = days.sums.filter { $0.key > oldest }
        return !days.sums.isEmpty
      }
    }
    for stream in chains.all.filter({ $0.value.value.hasDays(before: oldest) }).keys {
      chains.change(stream) { chain in
        chain.forget(before: oldest)
        return chain.weight > 0
      }
    }
    countPlaces()
  }

  private func countPlaces() {
    places = days.all.values.reduce(0) { $0 + $1.value.sums.values.reduce(0) { $0 + $1.devices.count } }
  }

  private func add(_ report: ReleaseReport) {
    let day = report.endTime / Self.day
    let device = number(of: report.device)
    var isNew = true
    if let device {
      let stream = Stream(namespace: report.namespace, device: device, book: report.book)
      chains.change(stream, of: report.namespace, by: report.device, at: report.endTime, else: HourChain()) {
        isNew = $0.add(report)
      }
    }
    for use in report.uses where isNew {
      let release = Release(namespace: report.namespace, app: use.app, version: use.version)
      let madeRoom = days.change(release, of: report.namespace, by: report.device, at: report.endTime, else: Days()) {
        $0.count += 1
        $0.sums[day, default: Sum()].add(use)
        guard let device, places < Self.placesMax else { return }
        if $0.sums[day]?.devices.insert(device).inserted == true { places += 1 }
        if use.crashes > 0 { $0.sums[day]?.crashed.insert(device) }
      }
      if madeRoom { countPlaces() }
    }
  }

  private func number(of device: String) -> Int32? {
    if let known = numbers[device] { return known }
    guard numbers.count < Self.devicesMax else {
      unnumbered += 1
      return nil
    }
    numbers[device] = Int32(numbers.count)
    return numbers[device]
  }

  // MARK: Asking

  /// The days of releases. - Parameter range: of numbers of days.
  func sums(
    _ scope: Scope, namespace: String?, app: String?, _ range: ClosedRange<Int64>
  ) -> [Release: [Int64: Sum]] {
    days.all.filter { release, _ in
      (namespace ?? release.namespace) == release.namespace && (app ?? release.app) == release.app
        && scope.has(release.namespace)
    }.mapValues { $0.value.sums.filter { range.contains($0.key) } }.filter { !$0.value.isEmpty }
  }

  /// Uses of releases that gave up their place, by namespace, and under "" what no place was found for.
  func leftOut(_ scope: Scope, namespace: String?) -> LeftOut {
    let named = days.leftOut(scope).filter { (namespace ?? $0.key) == $0.key }
    return LeftOut(byNamespace: named.merging(unnumbered > 0 ? ["": unnumbered] : [:], uniquingKeysWith: +))
  }

  /// Hours that were lost on their way, by the number of the device; 0: the chain of its packets is broken, and how much is missing
  /// is not known.
  func missing(_ scope: Scope, namespace: String?, _ range: ClosedRange<Int64>) -> [Int32: Int] {
    var found: [Int32: Int] = [:]
    for (stream, chain) in chains.all where (namespace ?? stream.namespace) == stream.namespace {
      guard scope.has(stream.namespace), let lost = chain.value.missing(range) else { continue }
      found[stream.device, default: 0] += lost
    }
    return found
  }
}
