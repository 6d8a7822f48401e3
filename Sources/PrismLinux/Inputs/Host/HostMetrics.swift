import PrismBase
import PrismProtocol

/// The kernel's counters at one moment; the difference of two is an interval. Pure: the text comes from `HostFiles`.
struct HostCounters: Sendable, Equatable {
  /// Since the boot.
  var uptime: Duration = .zero
  /// user, nice, system, idle, iowait, irq, softirq, steal (proc(5), /proc/stat).
  var processorTicks: [UInt64] = []
  /// Microseconds in which some or all tasks waited, by `cpuSome`, `memoryFull` and the like.
  var pressure: [String: UInt64] = [:]
  /// By the name of the disk: bytes read, bytes written, milliseconds busy.
  var disks: [String: [UInt64]] = [:]
  /// By the name of the interface: bytes received, bytes sent, errors, dropped packets.
  var interfaces: [String: [UInt64]] = [:]

  /// The first line of /proc/stat.
  mutating func takeProcessor(_ text: String) {
    guard let line = text.split(separator: "\n").first, line.hasPrefix("cpu ") else { return }
    processorTicks = line.split(separator: " ").dropFirst().prefix(8).compactMap { UInt64($0) }
  }

  /// A file of /proc/pressure: `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
  mutating func takePressure(_ text: String, of resource: String) {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard let kind = words.first, let total = words.last, total.hasPrefix("total="),
        // Of processors `full` means nothing for the whole system: it is 0.
        kind == "some" || resource != "cpu"
      else { continue }
      pressure[resource + (kind == "some" ? "Some" : "Full")] = UInt64(total.dropFirst("total=".count))
    }
  }

  /// /proc/diskstats (Documentation/admin-guide/iostats.rst): sectors have 512 bytes.
  /// - Parameter isDisk: whether a name is that of a whole disk.
  mutating func takeDisks(_ text: String, isDisk: (String) -> Bool) {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 12 else { continue }
      let name = String(words[2])
      let numbers = words.dropFirst(3).map { UInt64($0) ?? 0 }
      guard numbers[0] + numbers[4] > 0, !name.hasPrefix("loop"), !name.hasPrefix("ram"), isDisk(name) else { continue }
      disks[name] = [numbers[2] &* 512, numbers[6] &* 512, numbers[9]]
    }
  }

  /// /proc/net/dev (proc(5)); the loopback interface is left out.
  mutating func takeInterfaces(_ text: String) {
    for line in text.split(separator: "\n") {
      guard let colon = line.lastIndex(of: ":") else { continue }
      let name = String(line[..<colon]).trimmed
      let numbers = line[line.index(after: colon)...].split(separator: " ").compactMap { UInt64($0) }
      guard numbers.count >= 12, name != "lo", numbers[0] + numbers[8] > 0 else { continue }
      interfaces[name] = [numbers[0], numbers[8], numbers[2] &+ numbers[10], numbers[3] &+ numbers[11]]
    }
  }
}

/// Memory, load, file systems and temperatures at one moment, as a report has them.
struct HostGauges: Sendable, Equatable {
  /// Over 1, 5 and 15 minutes.
  var load: [JSONValue] = []
  var processors = 0
  var memory: [JSONValue.Member] = []
  var fileSystems: [JSONValue] = []
  var temperatures: [JSONValue] = []

  mutating func takeLoad(_ text: String) {
    load = text.split(separator: " ").prefix(3).compactMap { Double($0).map { .double($0) } }
  }

  /// /proc/meminfo, in KiB.
  mutating func takeMemory(_ text: String) {
    var numbers: [Substring: UInt64] = [:]
    for line in text.split(separator: "\n") {
      let words = line.split(whereSeparator: { $0 == " " || $0 == ":" })
      if words.count >= 2 { numbers[words[0]] = UInt64(words[1]) }
    }
    memory = [
      ("totalKByte", "MemTotal"), ("availableKByte", "MemAvailable"), ("swapKByte", "SwapTotal"),
      ("swapFreeKByte", "SwapFree"),
    ].compactMap { name, key in numbers[key].map { .init(name, .int($0)) } }
  }
}

/// The meta of a `hostMetrics` report (docs/host.md). Pure.
enum HostMetrics {
  /// Disks, file systems, interfaces and sensors, of each kind: a meta has at most 10 KiB.
  static let entriesMax = 12

  /// - Parameter before: at the start of the interval.
  static func meta(from before: HostCounters, to after: HostCounters, _ gauges: HostGauges) -> JSONValue {
    let interval = max(.milliseconds(1), after.uptime - before.uptime)
    let pressure = after.pressure.sorted { $0.key < $1.key }.map { name, total in
      JSONValue.Member(name, share(since(before.pressure[name], total), of: interval / .microseconds(1)))
    }
    let disks = entries(before.disks, after.disks, ["readByte", "writtenByte", "busy"]) { key, number in
      key == "busy" ? share(number, of: interval / .milliseconds(1)) : .int(number)
    }
    let network = entries(before.interfaces, after.interfaces, ["receivedByte", "sentByte", "errors", "dropped"]) {
      _, number in .int(number)
    }
    let members: KeyValuePairs<String, JSONValue> = [
      "uptimeSecond": .int(after.uptime.components.seconds), "intervalMs": .int(Int64(interval / .milliseconds(1))),
      "processors": .int(gauges.processors), "load": .array(gauges.load),
      "processor": processor(before.processorTicks, after.processorTicks), "memory": .object(gauges.memory),
      "pressure": .object(pressure), "disks": disks, "fileSystems": .array(gauges.fileSystems), "network": network,
      "temperatures": .array(gauges.temperatures),
    ]
    return .object(
      members.filter { $0.value != .object([]) && $0.value != .array([]) }.map { .init($0.key, $0.value) })
  }

  /// A counter that went back began again at 0.
  private static func since(_ before: UInt64?, _ after: UInt64) -> UInt64 {
    guard let before, after >= before else { return after }
    return after - before
  }

  /// 0 to 1, with four digits.
  private static func share(_ part: UInt64, of whole: Double) -> JSONValue {
    .double(min(1, (Double(part) / max(whole, 1) * 10_000).rounded() / 10_000))
  }

  private static func processor(_ before: [UInt64], _ after: [UInt64]) -> JSONValue {
    guard after.count == 8 else { return .object([]) }
    let ticks = zip(before.count == 8 ? before : Array(repeating: 0, count: 8), after).map { since($0, $1) }
    let whole = Double(ticks.reduce(0, &+))
    let busy = ticks.reduce(0, &+) - ticks[3] - ticks[4]
    return [
      "busy": share(busy, of: whole), "system": share(ticks[2] + ticks[5] + ticks[6], of: whole),
      "iowait": share(ticks[4], of: whole), "steal": share(ticks[7], of: whole),
    ]
  }

  /// An object for each name, with the growth of its counters under their keys.
  private static func entries(
    _ before: [String: [UInt64]], _ after: [String: [UInt64]], _ keys: [String],
    _ value: (String, UInt64) -> JSONValue
  ) -> JSONValue {
    .array(
      after.sorted { $0.key < $1.key }.prefix(entriesMax).map { name, counters in
        let old = before[name]
        let members = keys.indices.map { JSONValue.Member(keys[$0], value(keys[$0], since(old?[$0], counters[$0]))) }
        return .object([.init("name", .string(name))] + members)
      })
  }
}
