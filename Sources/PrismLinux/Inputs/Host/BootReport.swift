import CLinux
import Glibc
import PrismBase
import PrismProtocol

/// The meta of an `appBoot` report (docs/host.md).
struct BootReport: Sendable {
  /// Of the kernel: a new one at each boot.
  let bootID: String
  var kernel: String
  /// Since the boot.
  var uptime: Duration
  /// nil: nothing is known of the run before.
  var lastShutdown: LastShutdown?
  /// nil: systemd does not run, or can't be asked.
  var times: prism_boot_times?

  /// - Returns: nil without /proc.
  init?(_ files: HostFiles, time: any TimeSource) {
    guard let id = files.bootID else { return nil }
    bootID = id
    kernel = files.text("/proc/sys/kernel/osrelease", bytesMax: 256)?.trimmed ?? ""
    uptime = time.uptime
    let bootTime = time.unixMilliseconds / 1000 - uptime.components.seconds
    lastShutdown = LastShutdown.read(files, bootTime: bootTime)
    var times = prism_boot_times()
    self.times = prism_read_boot_times(&times) == 0 ? times : nil
  }

  /// Whether there is no more to come: the boot is over, or takes too long, or systemd is not there to tell.
  var isComplete: Bool {
    guard let times else { return true }
    return times.finish > 0 || uptime > Self.waitMax
  }

  private static let waitMax: Duration = .seconds(900)

  var meta: JSONValue {
    var members: [JSONValue.Member] = [
      .init("kernel", .string(kernel)), .init("uptimeSecond", .int(uptime.components.seconds)),
    ]
    if let lastShutdown { members.append(.init("lastShutdown", .string(lastShutdown.rawValue))) }
    let phases = phases
    if !phases.isEmpty { members.append(.init("phases", .object(phases))) }
    return .object(members)
  }

  /// As systemd-analyze(1) takes the boot apart.
  private var phases: [JSONValue.Member] {
    guard let times else { return [] }
    let kernelEnd = times.initrd > 0 ? times.initrd : times.userspace
    let phases: [(String, UInt64, UInt64)] = [
      ("firmwareMs", times.loader, times.firmware), ("loaderMs", 0, times.loader), ("kernelMs", 0, kernelEnd),
      ("initrdMs", times.initrd, times.initrd > 0 ? times.userspace : 0),
      ("userspaceMs", times.userspace, times.finish),
    ]
    return phases.filter { $0.2 > $0.1 }.map { .init($0.0, .int(($0.2 - $0.1) / 1000)) }
  }
}

/// How the machine's run before this boot ended.
enum LastShutdown: String, Sendable {
  /// The system was shut down in order.
  case clean
  /// The kernel died, and left a trace.
  case crash
  /// Neither: the power was lost, or the kernel left no trace.
  case power

  /// A record of /var/log/wtmp (utmp(5)), as far as it counts.
  enum Record: Sendable, Equatable { case boot, shutdown, other }

  /// - Parameter records: the newest last. - Parameter hasCrashTrace: of the kernel, since this boot.
  /// - Returns: nil if nothing is known of a run before this one.
  init?(records: [Record], hasCrashTrace: Bool) {
    guard let thisBoot = records.lastIndex(of: .boot), thisBoot > 0 else {
      if !hasCrashTrace { return nil }
      self = .crash
      return
    }
    let lastRun = records[..<thisBoot].reversed().prefix { $0 != .boot }
    self = lastRun.contains(.shutdown) ? .clean : hasCrashTrace ? .crash : .power
  }

  private static let recordsMax = 4096

  /// Reads the records of the system. - Parameter bootTime: of this boot, in seconds since 1970.
  static func read(_ files: HostFiles, bootTime: Int64) -> LastShutdown? {
    LastShutdown(records: records(files.root + "/var/log/wtmp"), hasCrashTrace: hasCrashTrace(files, bootTime))
  }

  private static func records(_ path: String) -> [Record] {
    let size = MemoryLayout<utmpx>.size
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    let count = Int(lseek(descriptor, 0, SEEK_END)) / size
    let first = max(0, count - recordsMax)
    var bytes = [UInt8](repeating: 0, count: (count - first) * size)
    guard pread(descriptor, &bytes, bytes.count, off_t(first * size)) == bytes.count else { return [] }
    return bytes.withUnsafeBytes { raw in
      stride(from: 0, to: raw.count, by: size).map { Record(raw.loadUnaligned(fromByteOffset: $0, as: utmpx.self)) }
    }
  }

  /// systemd-pstore(8) keeps what a dying kernel wrote; a watchdog that reset the machine says so (linux/watchdog.h).
  private static func hasCrashTrace(_ files: HostFiles, _ bootTime: Int64) -> Bool {
    let folder = files.root + "/var/lib/systemd/pstore"
    let isSaved = SideFile.names(in: folder).contains { name in
      var facts = stat()
      return stat("\(folder)/\(name)", &facts) == 0 && Int64(facts.st_mtim.tv_sec) >= bootTime - 60
    }
    let cardReset = 1 << 5
    let status = files.text("/sys/class/watchdog/watchdog0/bootstatus", bytesMax: 32).flatMap { Int($0.trimmed) } ?? 0
    return isSaved || status & cardReset != 0
  }
}

extension LastShutdown.Record {
  fileprivate init(_ record: utmpx) {
    switch Int32(record.ut_type) {
    case BOOT_TIME: self = .boot
    case RUN_LVL:
      let user = withUnsafeBytes(of: record.ut_user) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      self = user == "shutdown" ? .shutdown : .other
    default: self = .other
    }
  }
}
