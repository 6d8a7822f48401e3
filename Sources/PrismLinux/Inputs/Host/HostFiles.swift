import Glibc
import PrismBase

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
    let paths = text("/proc/self/mounts").map(HostGauges.mountPoints) ?? []
    gauges.fileSystems = paths.prefix(HostMetrics.entriesMax).compactMap { fileSystem($0) }
    gauges.temperatures = temperatures()
    return gauges
  }

  private func fileSystem(_ path: String) -> HostGauges.FileSystem? {
    var facts = Glibc.statvfs()
    guard statvfs(path, &facts) == 0, facts.f_blocks > 0 else { return nil }
    let block = UInt64(facts.f_frsize)
    return .init(
      path: path, bytes: UInt64(facts.f_blocks) * block, freeBytes: UInt64(facts.f_bavail) * block,
      freeInodes: UInt64(facts.f_favail))
  }

  /// Documentation/driver-api/thermal/sysfs-api.rst: thousandths of a degree.
  private func temperatures() -> [HostGauges.Temperature] {
    let zones = SideFile.names(in: "\(root)/sys/class/thermal").filter { $0.hasPrefix("thermal_zone") }.sorted()
    return zones.prefix(HostMetrics.entriesMax).compactMap { zone in
      let folder = "/sys/class/thermal/\(zone)"
      guard let name = text("\(folder)/type", bytesMax: 64)?.trimmed,
        let value = text("\(folder)/temp", bytesMax: 64).flatMap({ Int($0.trimmed) })
      else { return nil }
      return .init(name: name, celsius: Double(value) / 1000)
    }
  }

  func text(_ path: String, bytesMax: Int = 65_536) -> String? { SmallFile.text(root + path, bytesMax: bytesMax) }
}
