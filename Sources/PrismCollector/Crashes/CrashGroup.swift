import PrismProtocol

struct CrashGroup: Sendable {
  private static let devicesMax = 10_000, versionsMax = 50, namespacesMax = 50, reportsMax = 50, rulesMax = 200
  private static let similarMax = 5
  static let hour: Int64 = 3_600_000
  private static let hoursMax = 24 * 30

  let fingerprint: String
  let reason: String
  let frames: [CrashFrame]
  private(set) var count = 0
  private(set) var lastTime: Int64
  /// The lowest time and the lowest id of its crashes.
  private var first: (time: Int64, report: Int64)
  private(set) var devices: [String: CrashTally] = [:]
  /// By the app's name and version; those that found no room are `…`.
  private(set) var versions: [String: CrashTally] = [:]
  private(set) var namespaces: Set<String> = []
  /// The fingerprints of the rules of operators that led crashes here.
  private(set) var rules: Set<String> = []
  /// Crashes by the hour since 1970.
  private(set) var hours: [Int64: Int] = [:]
  /// The newest ones, ascending.
  private(set) var reports: [Int64] = []

  init(_ crash: CrashReport) {
    (fingerprint, reason, frames) = (crash.fingerprint.text, crash.reason, crash.frames)
    (first, lastTime) = ((crash.receivedTime, crash.report), crash.receivedTime)
  }

  /// - Parameter path: the fingerprints of the rules that led it here.
  mutating func add(_ crash: CrashReport, by path: ArraySlice<CrashFingerprint> = []) {
    count += 1
    first.report = min(first.report, crash.report)
    for rule in path where rules.count < Self.rulesMax { rules.insert(rule.text) }
    (first.time, lastTime) = (min(first.time, crash.receivedTime), max(lastTime, crash.receivedTime))
    if devices[crash.device] != nil || devices.count < Self.devicesMax {
      devices[crash.device, default: CrashTally()].add(crash)
    }
    versions[place(of: crash.versionName), default: CrashTally()].add(crash)
    if namespaces.count < Self.namespacesMax { namespaces.insert(crash.namespace) }
    hours[crash.receivedTime / Self.hour, default: 0] += 1
    if hours.count > Self.hoursMax, let oldest = hours.keys.min() { hours[oldest] = nil }
    reports.append(crash.report)
    if reports.count > Self.reportsMax { reports.removeFirst() }
  }

  /// Takes out a crash that was added. The first and the last time stay.
  mutating func remove(_ crash: CrashReport) {
    count -= 1
    devices[crash.device] = devices[crash.device]?.without(crash)
    let version = place(of: crash.versionName)
    versions[version] = versions[version]?.without(crash)
    hours[crash.receivedTime / Self.hour] = hours[crash.receivedTime / Self.hour].flatMap { $0 > 1 ? $0 - 1 : nil }
    reports.removeAll { $0 == crash.report }
  }

  func isWithin(_ scope: Scope) -> Bool { namespaces.count < Self.namespacesMax && namespaces.allSatisfy(scope.has) }

  var firstTime: Int64 { first.time }
  var firstReport: Int64 { first.report }

  private func place(of version: String) -> String {
    versions[version] != nil || versions.count < Self.versionsMax ? version : "…"
  }

  /// Rounded to the hour, but for a time that has all of them.
  func count(since: Int64, until: Int64) -> Int {
    guard firstTime < since || lastTime >= until else { return count }
    let wanted = since / Self.hour...max(since, until - 1) / Self.hour
    return hours.reduce(0) { $0 + (wanted.contains($1.key) ? $1.value : 0) }
  }

  /// Devices with a crash in the hour of `time` or later, as `count` counts.
  func deviceCount(since time: Int64) -> Int {
    firstTime >= time ? devices.count : devices.values.count { $0.lastTime / Self.hour >= time / Self.hour }
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
      "trend": trend(since: since, until: until, buckets: buckets),
    ])
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
    let own = Set(CrashFingerprint.parts(frames)).subtracting(["main"])
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
      "group": group, "frames": frames.map(\.text), "stack": stack, "key": CrashFingerprint.parts(frames),
      "rules": CrashFrameTable.version, "groupedBy": rules.sorted(), "devices": counted(devices, "device"),
      "versions": counted(versions, "version"), "reports": Array(reports.reversed()),
    ])
  }
}

/// Crashes of one device or one build within a group.
struct CrashTally: Sendable, Equatable {
  var count = 0
  /// When the newest came, milliseconds since 1970.
  var lastTime: Int64 = 0
  /// The id of the newest crash; 0 after that one was taken out.
  var lastReport: Int64 = 0
  /// When the last one happened, milliseconds since 1970; 0 after that one was taken out.
  var lastHappened: Int64 = 0

  mutating func add(_ crash: CrashReport) {
    count += 1
    (lastTime, lastReport) = (max(lastTime, crash.receivedTime), max(lastReport, crash.firstRow))
    lastHappened = max(lastHappened, crash.happenedTime)
  }

  /// - Returns: nil: no crash is left.
  func without(_ crash: CrashReport) -> CrashTally? {
    guard count > 1 else { return nil }
    return CrashTally(
      count: count - 1, lastTime: lastTime, lastReport: lastReport == crash.firstRow ? 0 : lastReport,
      lastHappened: lastHappened == crash.happenedTime ? 0 : lastHappened)
  }
}

/// The newest crashes by their report, each as the row of it that says most.
struct RecentCrashes {
  private struct Key: Hashable {
    let device: String, namespace: String, reportID: String
  }

  static let countMax = 8192

  private var crashes: [Key: CrashReport] = [:]
  private var order: [Key] = []
  private var oldest = 0

  /// Notes a row of a crash, without its frames. - Returns: the other row of its report; nil: it is the first.
  mutating func exchange(_ crash: CrashReport) -> CrashReport? {
    let key = Key(device: crash.device, namespace: crash.namespace, reportID: crash.reportID)
    var noted = crash
    noted.frames = []
    if let other = crashes[key] {
      if crash.saysMore(than: other) { crashes[key] = noted }
      return other
    }
    crashes[key] = noted
    if order.count < Self.countMax {
      order.append(key)
    } else {
      crashes[order[oldest]] = nil
      order[oldest] = key
      oldest = (oldest + 1) % Self.countMax
    }
    return nil
  }
}
