import PrismProtocol

/// Crashes with one key: what lists, conditions and notices need of them. Their frames, and the names of devices, are read from the store
/// when the page of the group is opened.
struct CrashGroup: PlacedValue {
  static let devicesMax = 10_000
  private static let versionsMax = 50, rulesMax = 200, similarMax = 5, frameBytesMax = 200
  /// The versions that found no room.
  private static let otherVersions = "…"
  /// Of its unchanging parts in a table that is half empty, without its texts.
  private static let leastBytes = 1024

  let fingerprint: String
  let reason: String
  /// The innermost frame of the app.
  let frame: String?
  /// Hashes of the functions of all frames.
  private let functions: [Int32]
  private(set) var count = 0
  private(set) var times = CrashTimes()
  /// The lowest id of its crashes.
  private(set) var firstReport: Int64
  /// The crash that made it.
  private var sample: Int64
  /// By the hashes of their ids.
  private var devices: [Int: CrashTally] = [:]
  /// By the app's name and version.
  private(set) var versions: [String: CrashTally] = [:]
  private(set) var namespaces: Set<String>
  /// The fingerprints of the rules of operators that led crashes here.
  private(set) var rules: Set<String> = []

  init(_ crash: CrashReport) {
    (fingerprint, reason, namespaces) = (crash.fingerprint.text, crash.reason, [crash.namespace])
    frame = CrashFrameTable.standard.appFrames(crash.frames).first?.text.cut(atBytes: Self.frameBytesMax)
    functions = Set(crash.frames.lazy.compactMap(\.function).map(Self.hash)).prefix(CrashStack.framesMax).map(\.self)
    (firstReport, sample) = (crash.report, crash.report)
  }

  var firstTime: Int64 { times.first }
  var lastTime: Int64 { times.last }
  /// The newest ones, ascending.
  var reports: [Int64] { times.newest.map(\.report) }
  var lastReport: Int64 { times.newest.last?.report ?? 0 }
  /// Reports whose frames are those of the group, as long as they are stored.
  var samples: [Int64] { [sample] + reports.suffix(3).reversed() }

  /// The bytes of memory that it takes, with the free parts of its tables.
  var weight: Int {
    let texts = [fingerprint, reason, frame ?? ""] + namespaces + versions.keys + rules
    return Self.leastBytes + texts.reduce(0) { $0 + 48 + $1.utf8.count } + 4 * functions.count + devices.tableBytes
      + versions.tableBytes + times.bytes
  }

  /// Whether it has a crash of a device.
  func crashes(of device: String) -> Int? { devices[device.hashValue]?.count }

  /// - Parameter path: the fingerprints of the rules that led it here.
  mutating func add(_ crash: CrashReport, by path: ArraySlice<CrashFingerprint> = []) {
    count += crash.weight
    firstReport = min(firstReport, crash.report)
    for rule in path where rules.count < Self.rulesMax { rules.insert(rule.text) }
    let (device, version) = (crash.device.hashValue, place(of: crash.versionName))
    if devices[device] != nil || devices.count < Self.devicesMax {
      devices[device, default: CrashTally()].count += crash.weight
    }
    versions[version, default: CrashTally()].count += crash.weight
    settle(
      times.add(
        .init(
          report: crash.report, happenedTime: crash.happenedTime, device: device, version: version, weight: crash.weight
        )))
  }

  private mutating func settle(_ old: CrashTimes.Recent?) {
    guard let old else { return }
    devices[old.device]?.settle(old)
    versions[old.version]?.settle(old)
  }

  /// Takes out a crash that was added.
  mutating func remove(_ crash: CrashReport) {
    count -= crash.weight
    let version = times.remove(crash)?.version ?? place(of: crash.versionName)
    let device = crash.device.hashValue
    devices[device] = devices[device]?.without(crash.weight)
    versions[version] = versions[version]?.without(crash.weight)
    if crash.report == sample { sample = lastReport }
  }

  /// Adds the crashes of another namespace.
  mutating func join(_ other: CrashGroup) {
    count += other.count
    if other.firstReport < firstReport { sample = other.sample }
    firstReport = min(firstReport, other.firstReport)
    namespaces.formUnion(other.namespaces)
    rules.formUnion(other.rules)
    for (device, tally) in other.devices where devices[device] != nil || devices.count < Self.devicesMax {
      devices[device, default: CrashTally()].join(tally)
    }
    for (version, tally) in other.versions { versions[place(of: version), default: CrashTally()].join(tally) }
    for old in times.join(other.times) { settle(old) }
  }

  private func place(of version: String) -> String {
    // The text that the group has, so that all of them share it.
    if let known = versions.index(forKey: version) { return versions.keys[known] }
    return versions.count < Self.versionsMax ? version : Self.otherVersions
  }

  /// The versions that crashed, as many as are known.
  var knownVersions: [String] { versions.keys.filter { $0 != Self.otherVersions }.sorted() }

  /// Whether a crash of a version happened at `time` or later.
  func hasCrashed(in version: String, since time: Int64) -> Bool {
    versions[version]?.lastTime ?? .min >= time
      || times.newest.contains { $0.version == version && $0.happenedTime >= time }
  }

  func count(since: Int64, until: Int64) -> Int { times.count(since: since, until: until) ?? count }

  /// Devices with a crash in the hour of `time` or later, as `count` counts.
  func deviceCount(since time: Int64) -> Int {
    guard firstTime < time else { return devices.count }
    let hour = { (time: Int64) in time / CrashTimes.hour }
    let recent = Set(times.newest.filter { hour($0.happenedTime) >= hour(time) }.map(\.device))
    return devices.count { hour($0.value.lastTime) >= hour(time) || recent.contains($0.key) }
  }

  /// One line of the list, with a trend of `buckets` equal parts that ends with the hour of `until`. Counts but the totals
  /// are of that time, and that of `device`, which is of all times.
  func summary(since: Int64, until: Int64, buckets: Int, device: String? = nil) -> JSONValue {
    JSONValue([
      "fingerprint": fingerprint, "reason": reason, "frame": frame, "count": count(since: since, until: until),
      "total": count, "devices": deviceCount(since: since), "totalDevices": devices.count,
      "deviceCount": device.map { crashes(of: $0) ?? 0 }, "firstTime": firstTime, "lastTime": lastTime,
      "versions": Self.largest(versions, 3).map(\.key), "namespaces": namespaces.sorted(),
      "trend": times.trend(since: since, until: until, buckets: buckets),
    ])
  }

  private static func largest<Key: Comparable>(
    _ counts: [Key: CrashTally], _ limit: Int
  ) -> ArraySlice<(key: Key, value: CrashTally)> {
    counts.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.prefix(limit)
  }

  private static func hash(_ function: String) -> Int32 { Int32(truncatingIfNeeded: function.hashValue) }

  /// The groups that share functions of the app with this one, those that share most first. Every C program has a `main`.
  /// - Parameter frames: those of this one.
  func similar(_ frames: [CrashFrame], in all: some Sequence<CrashGroup>) -> [JSONValue] {
    let own = Set(CrashFrameTable.standard.appFrames(frames).compactMap(\.function).prefix(6)).subtracting(["main"])
    let hashes = Set(own.map(Self.hash))
    let found = all.lazy.filter { $0.fingerprint != fingerprint }.map { other in
      (other: other, shared: hashes.intersection(other.functions).count)
    }.filter { $0.shared > 0 }
    let order = { (one: (other: CrashGroup, shared: Int)) in (one.shared, one.other.lastTime, one.other.fingerprint) }
    return found.sorted { order($1) < order($0) }.prefix(Self.similarMax).map {
      JSONValue([
        "fingerprint": $0.other.fingerprint, "reason": $0.other.reason, "frame": $0.other.frame,
        "total": $0.other.count, "shared": $0.shared,
      ])
    }
  }

  /// - Parameters:
  ///   - group: what its line of the list has.
  ///   - sample: one of its crashes; nil: they are no longer stored.
  ///   - known: the devices of the reader's namespaces.
  func details(_ group: JSONValue, _ sample: CrashReport?, _ known: [String]) -> JSONValue {
    let counted = { (count: Int, name: String, key: String) in
      JSONValue(byName: ["count": .int(count), name: .string(key)] as [String: JSONValue])
    }
    let names = Dictionary(known.lazy.filter { crashes(of: $0) != nil }.map { ($0.hashValue, $0) }) { $1 }
    let named = Self.largest(devices.filter { names[$0.key] != nil }, 50)
    return JSONValue([
      "group": group, "frames": sample?.frames.map(\.text) ?? [], "stack": sample?.stack ?? [],
      "key": sample.map { CrashFingerprint.parts($0.frames, app: $0.origin.program) } ?? [],
      "rules": CrashFrameTable.version, "groupedBy": rules.sorted(),
      "devices": named.map { counted($0.value.count, "device", names[$0.key] ?? "") },
      "versions": Self.largest(versions, 50).map { counted($0.value.count, "version", $0.key) },
      "reports": Array(reports.reversed()),
    ])
  }
}

/// Crashes of one device or one build within a group.
struct CrashTally: Sendable, Equatable {
  var count = 0
  /// When the last of those happened that are not among the newest of the group; milliseconds since 1970.
  var lastTime: Int64 = 0

  mutating func settle(_ crash: CrashTimes.Recent) { lastTime = max(lastTime, crash.happenedTime) }

  /// nil: no crash is left.
  func without(_ crashes: Int) -> CrashTally? {
    count > crashes ? CrashTally(count: count - crashes, lastTime: lastTime) : nil
  }

  mutating func join(_ other: CrashTally) { (count, lastTime) = (count + other.count, max(lastTime, other.lastTime)) }
}

/// When the crashes of a group happened, in milliseconds since 1970. The newest may be taken out again, as their payload may lead
/// them to another group: so they are no part of what can't be taken back.
struct CrashTimes: Sendable {
  private static let newestMax = 50
  static let hour: Int64 = 3_600_000
  private static let hoursMax = 24 * 30

  struct Recent: Sendable {
    let report: Int64, happenedTime: Int64
    let device: Int, version: String
    let weight: Int
  }

  private(set) var first = Int64.max, last = Int64.min
  /// By their ids, ascending.
  private(set) var newest: [Recent] = []
  /// The first and the last time of the others.
  private var settled: ClosedRange<Int64>?
  /// Crashes by the hour since 1970.
  private var hours: [Int64: Int] = [:]

  var bytes: Int { newest.capacity * MemoryLayout<Recent>.stride + hours.tableBytes }

  /// - Returns: one that is no longer among the newest.
  mutating func add(_ crash: Recent) -> Recent? {
    let time = crash.happenedTime
    (first, last) = (min(first, time), max(last, time))
    hours[time / Self.hour, default: 0] += crash.weight
    forgetHours()
    newest.append(crash)
    guard newest.count > Self.newestMax else { return nil }
    let old = newest.removeFirst()
    settle(old.happenedTime...old.happenedTime)
    return old
  }

  private mutating func settle(_ times: ClosedRange<Int64>) {
    let range = settled ?? times
    settled = min(range.lowerBound, times.lowerBound)...max(range.upperBound, times.upperBound)
  }

  private mutating func forgetHours() {
    while hours.count > Self.hoursMax, let oldest = hours.keys.min() { hours[oldest] = nil }
  }

  /// - Returns: those that are no longer among the newest.
  mutating func join(_ other: CrashTimes) -> ArraySlice<Recent> {
    (first, last) = (min(first, other.first), max(last, other.last))
    hours.merge(other.hours, uniquingKeysWith: +)
    forgetHours()
    if let times = other.settled { settle(times) }
    let all = (newest + other.newest).sorted { $0.report < $1.report }
    newest = all.suffix(Self.newestMax)
    let old = all.dropLast(Self.newestMax)
    for recent in old { settle(recent.happenedTime...recent.happenedTime) }
    return old
  }

  /// - Returns: what was noted of it, if it is one of the newest. The first and the last time stay if it is not.
  mutating func remove(_ crash: CrashReport) -> Recent? {
    let (hour, place) = (crash.happenedTime / Self.hour, newest.lastIndex { $0.report == crash.report })
    hours[hour] = hours[hour].flatMap { $0 > crash.weight ? $0 - crash.weight : nil }
    guard let recent = place.map({ newest.remove(at: $0) }) else { return nil }
    let times = newest.map(\.happenedTime)
    first = min(times.min() ?? .max, settled?.lowerBound ?? .max)
    last = max(times.max() ?? .min, settled?.upperBound ?? .min)
    return recent
  }

  /// Those of a time, rounded to the hour; nil: all are of this time.
  func count(since: Int64, until: Int64) -> Int? {
    guard first < since || last >= until else { return nil }
    let wanted = since / Self.hour...max(since, until - 1) / Self.hour
    return hours.reduce(0) { $0 + (wanted.contains($1.key) ? $1.value : 0) }
  }

  func trend(since: Int64, until: Int64, buckets: Int) -> [Int] {
    var trend = [Int](repeating: 0, count: buckets)
    let (first, last) = (since / Self.hour, max(since, until - 1) / Self.hour)
    // The first hour may be one more than the parts have.
    let width = max(1, (last - first + Int64(buckets) - 1) / Int64(buckets))
    for (hour, count) in hours where (first...last).contains(hour) {
      trend[max(0, buckets - 1 - Int((last - hour) / width))] += count
    }
    return trend
  }
}

extension Dictionary {
  /// The bytes of its table, about.
  fileprivate var tableBytes: Int { 64 + capacity * 4 / 3 * (MemoryLayout<Key>.stride + MemoryLayout<Value>.stride) }
}
