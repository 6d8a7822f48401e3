import CLinux

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
