import CLinux
import Glibc
import PrismBase
import PrismControl
import PrismProtocol

/// The disk that the store is on, and the clock.
enum MachineCheck {
  /// Below this the store is about to refuse reports.
  static let freeBytesFault = 32 << 20
  static let freeBytesWarning = 256 << 20

  static func findings(state: String?) -> [Finding] {
    [disk(state ?? "/var/lib/prism"), clock()]
  }

  private static func disk(_ folder: String) -> Finding {
    var facts = statvfs()
    guard statvfs(folder, &facts) == 0 else {
      return Finding(
        "disk", .fault, "\(folder): \(Files.reason())", advice: "make it for prismd's user, or mend `state`")
    }
    let block = Int(facts.f_frsize)
    return disk(
      folder, freeBytes: Int(facts.f_bavail) * block, totalBytes: Int(facts.f_blocks) * block,
      freeFiles: facts.f_files == 0 ? nil : Int(facts.f_favail))
  }

  /// - Parameter freeFiles: nil: the filesystem makes as many as it likes.
  static func disk(_ folder: String, freeBytes: Int, totalBytes: Int, freeFiles: Int?) -> Finding {
    let text = "\(folder): \(StatusTable.bytes(freeBytes)) of \(StatusTable.bytes(totalBytes)) are free"
    let advice = "free space, give the store a disk of its own, or lower maxStoreMByte of the namespaces"
    if let freeFiles, freeFiles < 16 {
      return Finding("disk", .fault, "\(folder): \(freeFiles) inodes are free", advice: "remove files there")
    }
    if freeBytes < freeBytesFault { return Finding("disk", .fault, text, advice: advice) }
    if freeBytes < freeBytesWarning { return Finding("disk", .warning, text, advice: advice) }
    return Finding("disk", .ok, text)
  }

  private static func clock() -> Finding {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    let isKept = prism_clock_is_kept()
    return clock(unixSeconds: now.tv_sec, isSynchronised: isKept < 0 ? nil : isKept == 1)
  }

  /// - Parameter isSynchronised: nil: the kernel does not tell.
  static func clock(unixSeconds: Int, isSynchronised: Bool?) -> Finding {
    let time = RFC3339.text(unixMilliseconds: Int64(unixSeconds) * 1000)
    if unixSeconds < 1_704_067_200 {  // 2024
      return Finding(
        "clock", .fault, "it says \(time)",
        advice: "set it: reports would be stamped with that, and certificates not be in date yet")
    }
    guard isSynchronised == false else { return Finding("clock", .ok, "it says \(time)") }
    return Finding(
      "clock", .warning, "it says \(time), and nothing keeps it in time",
      advice: "run an NTP client: `timedatectl set-ntp true` (in a container the host does it)")
  }
}
