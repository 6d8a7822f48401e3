import PrismBase

/// The kernel's counters at one moment; the difference of two is an interval. Pure: the text comes from `HostFiles`.
struct HostCounters: Sendable, Equatable {
  struct Disk: Sendable, Equatable {
    var readBytes: UInt64 = 0
    var writtenBytes: UInt64 = 0
    var busyMilliseconds: UInt64 = 0
  }

  struct Interface: Sendable, Equatable {
    var receivedBytes: UInt64 = 0
    var sentBytes: UInt64 = 0
    var errors: UInt64 = 0
    var dropped: UInt64 = 0
  }

  /// Since the boot.
  var uptime: Duration = .zero
  /// user, nice, system, idle, iowait, irq, softirq, steal (proc(5), /proc/stat).
  var processorTicks: [UInt64] = []
  /// Microseconds in which some or all tasks waited, by `cpuSome`, `memoryFull` and the like.
  var pressure: [String: UInt64] = [:]
  var disks: [String: Disk] = [:]
  var interfaces: [String: Interface] = [:]

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
      disks[name] = Disk(
        readBytes: numbers[2] &* 512, writtenBytes: numbers[6] &* 512, busyMilliseconds: numbers[9])
    }
  }

  /// /proc/net/dev (proc(5)); the loopback interface is left out.
  mutating func takeInterfaces(_ text: String) {
    for line in text.split(separator: "\n") {
      guard let colon = line.lastIndex(of: ":") else { continue }
      let name = String(line[..<colon]).trimmed
      let numbers = line[line.index(after: colon)...].split(separator: " ").compactMap { UInt64($0) }
      guard numbers.count >= 12, name != "lo", numbers[0] + numbers[8] > 0 else { continue }
      interfaces[name] = Interface(
        receivedBytes: numbers[0], sentBytes: numbers[8], errors: numbers[2] &+ numbers[10],
        dropped: numbers[3] &+ numbers[11])
    }
  }
}
