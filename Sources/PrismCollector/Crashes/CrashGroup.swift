import PrismProtocol

struct CrashGroup: Sendable {
  static let devicesMax = 10_000
  private static let versionsMax = 50, namespacesMax = 50, rulesMax = 200, similarMax = 5
  /// The versions that found no room.
  private static let otherVersions = "…"

  let fingerprint: String
  let reason: String
  let frames: [CrashFrame]
  /// The parts of the key; empty if no stack is known.
  private let key: [String]
  private(set) var count = 0
  private(set) var times = CrashTimes()
  /// The lowest id of its crashes.
  private(set) var firstReport: Int64
  private(set) var devices: [String: CrashTally] = [:]
  /// By the app's name and version.
  private(set) var versions: [String: CrashTally] = [:]
  private(set) var namespaces: Set<String> = []
  /// The fingerprints of the rules of operators that led crashes here.
  private(set) var rules: Set<String> = []

  init(_ crash: CrashReport) {
    (fingerprint, reason, frames) = (crash.fingerprint.text, crash.reason, crash.frames)
    key = CrashFingerprint.parts(frames, app: crash.app)
    firstReport = crash.report
  }

  var firstTime: Int64 { times.first }
  var lastTime: Int64 { times.last }
  /// The newest ones, ascending.
  var reports: [Int64] { times.newest.map(\.report) }
  var lastReport: Int64 { times.newest.last?.report ?? 0 }

  /// - Parameter path: the fingerprints of the rules that led it here.
  mutating func add(_ crash: CrashReport, by path: ArraySlice<CrashFingerprint> = []) {
    count += 1
    firstReport = min(firstReport, crash.report)
    for rule in path where rules.count < Self.rulesMax { rules.insert(rule.text) }
    if devices[crash.device] != nil || devices.count < Self.devicesMax {
      devices[crash.device, default: CrashTally()].count += 1
    }
    let version = place(of: crash.versionName)
    versions[version, default: CrashTally()].count += 1
    if namespaces.count < Self.namespacesMax { namespaces.insert(crash.namespace) }
    if let old = times.add(crash, version: version) {
      devices[old.device]?.settle(old)
      versions[old.version]?.settle(old)
    }
  }

  /// Takes out a crash that was added.
  mutating func remove(_ crash: CrashReport) {
    count -= 1
    let version = times.remove(crash)?.version ?? place(of: crash.versionName)
    devices[crash.device] = devices[crash.device]?.withoutOne
    versions[version] = versions[version]?.withoutOne
  }

  func isWithin(_ scope: Scope) -> Bool { namespaces.count < Self.namespacesMax && namespaces.allSatisfy(scope.has) }

  private func place(of version: String) -> String {
    versions[version] != nil || versions.count < Self.versionsMax ? version : Self.otherVersions
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

  /// The innermost frame of the app.
  var frame: String? { CrashFrameTable.standard.appFrames(frames).first?.text }

  /// One line of the list, with a trend of `buckets` equal parts that ends with the hour of `until`. Counts but the totals
  /// are of that time, and that of `device`, which is of all times.
  func summary(since: Int64, until: Int64, buckets: Int, device: String? = nil) -> JSONValue {
    JSONValue([
      "fingerprint": fingerprint, "reason": reason, "frame": frame, "count": count(since: since, until: until),
      "total": count, "devices": deviceCount(since: since), "totalDevices": devices.count,
      "deviceCount": device.map { devices[$0]?.count ?? 0 }, "firstTime": firstTime, "lastTime": lastTime,
      "versions": Self.largest(versions, 3).map(\.key), "namespaces": namespaces.sorted(),
      "trend": times.trend(since: since, until: until, buckets: buckets),
    ])
  }

  static func largest(_ counts: [String: CrashTally], _ limit: Int) -> ArraySlice<(key: String, value: CrashTally)> {
    counts.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.prefix(limit)
  }

  /// The frames, with what is known of each.
  private var stack: [JSONValue] {
    let own = Set(CrashFrameTable.standard.appPlaces(frames))
    return frames.enumerated().map { place, frame in
      JSONValue([
        "text": frame.text, "function": frame.function, "file": frame.file, "line": frame.line,
        "module": frame.module, "buildId": frame.buildID,
        "offset": frame.offset.map { "0x" + String($0, radix: 16) }, "isInline": frame.isInline,
        "isApp": own.contains(place),
      ])
    }
  }

  /// The groups that share functions of the app with this one, those that share most first. Every C program has a `main`.
  func similar(in all: some Sequence<CrashGroup>) -> [JSONValue] {
    let own = Set(CrashFrameTable.standard.appFrames(frames).compactMap(\.function).prefix(6)).subtracting(["main"])
    let found = all.lazy.filter { $0.fingerprint != fingerprint }.map { other in
      (other: other, shared: own.intersection(other.frames.lazy.compactMap(\.function)).count)
    }.filter { $0.shared > 0 }
    let order = { (one: (other: CrashGroup, shared: Int)) in (one.shared, one.other.lastTime, one.other.fingerprint) }
    return found.sorted { order($1) < order($0) }.prefix(Self.similarMax).map {
      JSONValue([
        "fingerprint": $0.other.fingerprint, "reason": $0.other.reason, "frame": $0.other.frame,
        "total": $0.other.count, "shared": $0.shared,
      ])
    }
  }

  /// - Parameter group: what its line of the list has.
  func details(_ group: JSONValue) -> JSONValue {
    let counted = { (counts: [String: CrashTally], name: String) in
      Self.largest(counts, 50).map { key, tally in
        JSONValue(byName: ["count": .int(tally.count), name: .string(key)] as [String: JSONValue])
      }
    }
    return JSONValue([
      "group": group, "frames": frames.map(\.text), "stack": stack, "key": key,
      "rules": CrashFrameTable.version, "groupedBy": rules.sorted(), "devices": counted(devices, "device"),
      "versions": counted(versions, "version"), "reports": Array(reports.reversed()),
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
  var withoutOne: CrashTally? { count > 1 ? CrashTally(count: count - 1, lastTime: lastTime) : nil }
}

/// When the crashes of a group happened, in milliseconds since 1970. The newest may be taken out again, as their payload may lead
/// them to another group: so they are no part of what can't be taken back.
struct CrashTimes: Sendable {
  private static let newestMax = 50
  static let hour: Int64 = 3_600_000
  private static let hoursMax = 24 * 30

  struct Recent: Sendable {
    let report: Int64, happenedTime: Int64
    let device: String, version: String
  }

  private(set) var first = Int64.max, last = Int64.min
  /// By their ids, ascending.
  private(set) var newest: [Recent] = []
  /// The first and the last time of the others.
  private var settled: ClosedRange<Int64>?
  /// Crashes by the hour since 1970.
  private var hours: [Int64: Int] = [:]

  /// - Returns: one that is no longer among the newest.
  mutating func add(_ crash: CrashReport, version: String) -> Recent? {
    let time = crash.happenedTime
    (first, last) = (min(first, time), max(last, time))
    hours[time / Self.hour, default: 0] += 1
    if hours.count > Self.hoursMax, let oldest = hours.keys.min() { hours[oldest] = nil }
    newest.append(Recent(report: crash.report, happenedTime: time, device: crash.device, version: version))
    guard newest.count > Self.newestMax else { return nil }
    let old = newest.removeFirst()
    let range = settled ?? old.happenedTime...old.happenedTime
    settled = min(range.lowerBound, old.happenedTime)...max(range.upperBound, old.happenedTime)
    return old
  }

  /// - Returns: what was noted of it, if it is one of the newest. The first and the last time stay if it is not.
  mutating func remove(_ crash: CrashReport) -> Recent? {
    let (hour, place) = (crash.happenedTime / Self.hour, newest.lastIndex { $0.report == crash.report })
    hours[hour] = hours[hour].flatMap { $0 > 1 ? $0 - 1 : nil }
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
