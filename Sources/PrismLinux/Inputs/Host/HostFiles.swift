import Glibc
import PrismBase
import PrismProtocol

/// The files in which the kernel and the system tell about the machine.
struct HostFiles: Sendable {
  /// Of /proc and /sys; another folder in tests.
  var root = ""

  /// Of the kernel: a new one at each boot; nil without /proc.
  var bootID: String? {
    let id = text("/proc/sys/kernel/random/boot_id", bytesMax: 64)?.trimmed.filter { $0 != "-" }
    return id?.isEmpty == false ? id : nil
  }

  func counters(uptime: Duration) -> HostCounters {
    var counters = HostCounters(uptime: uptime)
    if let text = text("/proc/stat", bytesMax: 4096) { counters.takeProcessor(text) }
    for resource in ["cpu", "memory", "io"] {
      if let text = text("/proc/pressure/\(resource)") { counters.takePressure(text, of: resource) }
    }
    if let text = text("/proc/diskstats") {
      counters.takeDisks(text) { access("\(root)/sys/block/\($0)", F_OK) == 0 }
    }
    if let text = text("/proc/net/dev") { counters.takeInterfaces(text) }
    return counters
  }

  func gauges() -> HostGauges {
    var gauges = HostGauges()
    if let text = text("/proc/loadavg") { gauges.takeLoad(text) }
    if let text = text("/proc/meminfo") { gauges.takeMemory(text) }
    gauges.processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    let paths = text("/proc/self/mounts").map(Self.mountPoints) ?? []
    gauges.fileSystems = paths.prefix(HostMetrics.entriesMax).compactMap { fileSystem($0) }
    gauges.temperatures = temperatures()
    return gauges
  }

  /// Where file systems of local disks are mounted, each disk once, by /proc/self/mounts.
  static func mountPoints(_ text: String) -> [String] {
    var seen: Set<Substring> = []
    return text.split(separator: "\n").compactMap { line -> String? in
      let words = line.split(separator: " ")
      // A file system of a user's own program may never answer.
      guard words.count > 2, words[0].hasPrefix("/dev/"), !words[0].hasPrefix("/dev/loop"), !words[2].hasPrefix("fuse"),
        seen.insert(words[0]).inserted
      else { return nil }
      // A space in a path is written as an octal number (fstab(5)).
      return [("\\040", " "), ("\\011", "\t"), ("\\134", "\\")].reduce(String(words[1])) {
        $0.replacing($1.0, with: $1.1)
      }
    }
  }

  private func fileSystem(_ path: String) -> JSONValue? {
    var facts = Glibc.statvfs()
    guard statvfs(path, &facts) == 0, facts.f_blocks > 0 else { return nil }
    let block = UInt64(facts.f_frsize)
    return [
      "path": .string(String(path.prefix(128))), "totalByte": .int(UInt64(facts.f_blocks) * block),
      "freeByte": .int(UInt64(facts.f_bavail) * block), "freeInodes": .int(UInt64(facts.f_favail)),
    ]
  }

  /// Documentation/driver-api/thermal/sysfs-api.rst: thousandths of a degree.
  private func temperatures() -> [JSONValue] {
    let zones = SideFile.names(in: "\(root)/sys/class/thermal").filter { $0.hasPrefix("thermal_zone") }.sorted()
    return zones.prefix(HostMetrics.entriesMax).compactMap { zone in
      let folder = "/sys/class/thermal/\(zone)"
      guard let name = text("\(folder)/type", bytesMax: 64)?.trimmed,
        let value = text("\(folder)/temp", bytesMax: 64).flatMap({ Int($0.trimmed) })
      else { return nil }
      return ["name": .string(String(name.prefix(64))), "celsius": .double(Double(value) / 1000)]
    }
  }

  func text(_ path: String, bytesMax: Int = 65_536) -> String? { SmallFile.text(root + path, bytesMax: bytesMax) }
}
