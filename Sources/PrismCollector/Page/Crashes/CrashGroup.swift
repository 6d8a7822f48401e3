import PrismProtocol

/// Crashes with one fingerprint.
struct CrashGroup: Sendable {
  private static let devicesMax = 10_000, versionsMax = 50, namespacesMax = 50, reportsMax = 50, rulesMax = 200
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
    [
      "fingerprint": .string(fingerprint), "reason": .string(reason),
      "frame": frame.map { .string($0) } ?? .null, "count": .int(count(since: since, until: until)),
      "total": .int(count),
      "devices": .int(deviceCount(since: since)), "totalDevices": .int(devices.count),
      "deviceCount": device.map { .int(devices[$0]?.count ?? 0) } ?? .null, "firstTime": .int(firstTime),
      "lastTime": .int(lastTime),
      "versions": .array(Self.largest(versions, 3).map { .string($0.key) }),
      "namespaces": .array(namespaces.sorted().map { .string($0) }),
      "trend": .array(trend(since: since, until: until, buckets: buckets).map { .int($0) }),
    ]
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
    let text = { (text: String?) -> JSONValue in text.map { .string($0) } ?? .null }
    return frames.enumerated().map { place, frame -> JSONValue in
      [
        "text": .string(frame.text), "function": text(frame.function), "file": text(frame.file),
        "line": frame.line.map { .int($0) } ?? .null, "module": text(frame.module), "buildId": text(frame.buildID),
        "offset": text(frame.offset.map { "0x" + String($0, radix: 16) }), "isInline": .bool(frame.isInline),
        "isApp": .bool(own.contains(place)),
      ]
    }
  }

  func details(since: Int64, until: Int64, buckets: Int) -> JSONValue {
    let counted = { (counts: [String: CrashTally], name: String) -> JSONValue in
      .array(
        Self.largest(counts, 50).map { [name: .string($0.key), "count": .int($0.value.count)] as [String: JSONValue] }
          .map { members in .object(members.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, $0.value) }) })
    }
    return [
      "group": summary(since: since, until: until, buckets: buckets), "frames": .array(frames.map { .string($0.text) }),
      "stack": .array(stack),
      "key": .array(CrashFingerprint.parts(frames).map { .string($0) }), "rules": .int(CrashFrameTable.version),
      "groupedBy": .array(rules.sorted().map { .string($0) }),
      "devices": counted(devices, "device"), "versions": counted(versions, "version"),
      "reports": .array(reports.reversed().map { .int($0) }),
    ]
  }
}
