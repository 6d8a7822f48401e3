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
  var times: BootTimes?

  /// - Returns: nil without /proc.
  init?(_ files: HostFiles, time: any TimeSource) {
    guard let id = files.bootID else { return nil }
    bootID = id
    kernel = files.text("/proc/sys/kernel/osrelease", bytesMax: 256)?.trimmed ?? ""
    uptime = time.uptime
    let bootTime = time.unixMilliseconds / 1000 - uptime.components.seconds
    lastShutdown = LastShutdown.read(files, bootTime: bootTime)
    times = BootTimes.read()
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

/// systemd's times of this boot, in microseconds; 0 for a phase that was not passed.
struct BootTimes: Sendable, Equatable {
  var firmware: UInt64
  var loader: UInt64
  var initrd: UInt64
  var userspace: UInt64
  var finish: UInt64
}

extension BootTimes {
  /// Asks systemd, and waits for its answer. - Returns: nil if it does not run, or can't be asked.
  static func read() -> BootTimes? {
    var times = prism_boot_times()
    guard prism_read_boot_times(&times) == 0 else { return nil }
    return BootTimes(
      firmware: times.firmware, loader: times.loader, initrd: times.initrd, userspace: times.userspace,
      finish: times.finish)
  }
}
