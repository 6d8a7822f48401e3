import PrismProtocol

/// Crashes with one fingerprint.
struct CrashGroup: Sendable {
  private static let devicesMax = 10_000, versionsMax = 50, namespacesMax = 50, reportsMax = 50
  static let hour: Int64 = 3_600_000
  private static let hoursMax = 24 * 30

  let fingerprint: String
  let reason: String
  let frames: [String]
  private(set) var count = 0
  private(set) var firstTime: Int64, lastTime: Int64
  private(set) var devices: [String: Int] = [:]
  /// By the app's name and version.
  private(set) var versions: [String: Int] = [:]
  private(set) var namespaces: Set<String> = []
  /// Crashes by the hour since 1970.
  private(set) var hours: [Int64: Int] = [:]
  /// The newest ones, ascending.
  private(set) var reports: [Int64] = []

  init(_ crash: CrashReport) {
    (fingerprint, reason, frames) = (crash.fingerprint.text, crash.reason, crash.frames)
    (firstTime, lastTime) = (crash.receivedTime, crash.receivedTime)
  }

  mutating func add(_ crash: CrashReport) {
    count += 1
    (firstTime, lastTime) = (min(firstTime, crash.receivedTime), max(lastTime, crash.receivedTime))
    if devices[crash.device] != nil || devices.count < Self.devicesMax { devices[crash.device, default: 0] += 1 }
    let version = crash.versionName
    if versions[version] != nil || versions.count < Self.versionsMax { versions[version, default: 0] += 1 }
    if namespaces.count < Self.namespacesMax { namespaces.insert(crash.namespace) }
    hours[crash.receivedTime / Self.hour, default: 0] += 1
    if hours.count > Self.hoursMax, let oldest = hours.keys.min() { hours[oldest] = nil }
    reports.append(crash.report)
    if reports.count > Self.reportsMax { reports.removeFirst() }
  }

  /// Takes out a crash that was added. The first and the last time stay.
  mutating func remove(_ crash: CrashReport) {
    count -= 1
    let less = { (count: Int?) in count.flatMap { $0 > 1 ? $0 - 1 : nil } }
    devices[crash.device] = less(devices[crash.device])
    versions[crash.versionName] = less(versions[crash.versionName])
    hours[crash.receivedTime / Self.hour] = less(hours[crash.receivedTime / Self.hour])
    reports.removeAll { $0 == crash.report }
  }

  func count(since time: Int64) -> Int {
    firstTime >= time ? count : hours.reduce(0) { $0 + ($1.key >= time / Self.hour ? $1.value : 0) }
  }

  /// One line of the list, with a trend of `buckets` equal parts from `since` on.
  func summary(since: Int64, until: Int64, buckets: Int) -> JSONValue {
    [
      "fingerprint": .string(fingerprint), "reason": .string(reason),
      "frame": frames.first.map { .string($0) } ?? .null, "count": .int(count(since: since)), "total": .int(count),
      "devices": .int(devices.count), "firstTime": .int(firstTime), "lastTime": .int(lastTime),
      "versions": .array(Self.largest(versions, 3).map { .string($0.key) }),
      "namespaces": .array(namespaces.sorted().map { .string($0) }),
      "trend": .array(trend(since: since, until: until, buckets: buckets).map { .int($0) }),
    ]
  }

  func trend(since: Int64, until: Int64, buckets: Int) -> [Int] {
    var trend = [Int](repeating: 0, count: buckets)
    let width = max(Self.hour, (until - since + Int64(buckets) - 1) / Int64(buckets))
    for (hour, count) in hours {
      let place = (hour * Self.hour - since / Self.hour * Self.hour) / width
      if (0..<Int64(buckets)).contains(place) { trend[Int(place)] += count }
    }
    return trend
  }

  static func largest(_ counts: [String: Int], _ limit: Int) -> ArraySlice<(key: String, value: Int)> {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(limit)
  }

  func details(since: Int64, until: Int64) -> JSONValue {
    let counted = { (counts: [String: Int], name: String) -> JSONValue in
      .array(
        Self.largest(counts, 50).map { [name: .string($0.key), "count": .int($0.value)] as [String: JSONValue] }
          .map { members in .object(members.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, $0.value) }) })
    }
    return [
      "group": summary(since: since, until: until, buckets: 30), "frames": .array(frames.map { .string($0) }),
      "devices": counted(devices, "device"), "versions": counted(versions, "version"),
      "reports": .array(reports.reversed().map { .int($0) }),
    ]
  }
}
