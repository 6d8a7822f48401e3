import Glibc
import PrismBase

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
    let lastRun = records[..<thisBoot].suffix { $0 != .boot }
    self = lastRun.contains(.shutdown) ? .clean : hasCrashTrace ? .crash : .power
  }
}

extension ArraySlice<LastShutdown.Record> {
  /// The elements behind the last one that is not `isPart`.
  fileprivate func suffix(while isPart: (Element) -> Bool) -> ArraySlice {
    guard let end = lastIndex(where: { !isPart($0) }) else { return self }
    return self[(end + 1)...]
  }
}

extension LastShutdown {
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
