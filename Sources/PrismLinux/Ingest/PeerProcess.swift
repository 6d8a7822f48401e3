import CLinux
import Glibc
import PrismAdmission
import PrismBase

extension ReportingPeer {
  /// Asks the kernel who connected. nil when `descriptor` is no connected Unix socket any more.
  init?(of descriptor: Int32) {
    guard let credentials = PeerCredentials(of: descriptor) else { return nil }
    self.init(
      userID: credentials.userID, groupIDs: credentials.groupIDs.union([credentials.groupID]),
      processID: credentials.processID)
    let handle = ProcessHandle(ofPeer: descriptor)
    let facts = PeerProcess(processID: processID, userID: credentials.userID).facts { handle.isAlive }
    (processName, executable, unit) = (facts.name, facts.executable, facts.unit)
  }

  /// The sender of a datagram, as the kernel says; -1 for all: it does not.
  init(processID: Int32, userID: UInt32, groupID: UInt32) {
    guard userID != .max else {
      self.init(userID: nil, groupIDs: [], processID: 0)
      return
    }
    self.init(userID: userID, groupIDs: [groupID], processID: processID)
    let facts = PeerProcess(processID: processID, userID: userID).facts { nil }
    (processName, executable, unit) = (facts.name, facts.executable, facts.unit)
  }
}

extension SubmissionSource {
  /// The daemon itself.
  static func daemon(_ sessionID: String) -> SubmissionSource {
    let peer = ReportingPeer(
      userID: geteuid(), groupIDs: [getegid()], processID: getpid(), processName: "prismd")
    return SubmissionSource(peer: peer, sessionID: sessionID)
  }
}

/// The process at the other end of a connection, as `/proc` shows it. Another process may have got its number since it
/// connected.
struct PeerProcess {
  struct Facts: Equatable {
    var name: String?
    var executable: String?
    var unit: String?
  }

  /// 16 hierarchies of version 1 with paths of 1 KiB; a longer file is not used.
  private static let controlGroupBytesMax = 16 * 1024

  private let folder: String
  private let userID: UInt32

  /// - Parameter proc: where the kernel's file system of processes is.
  init(processID: Int32, userID: UInt32, proc: String = "/proc") {
    (folder, self.userID) = ("\(proc)/\(processID)", userID)
  }

  /// - Parameter isAlive: whether the process that connected still runs; nil: the kernel can't tell.
  /// - Returns: empty if it has ended, or the process of this number is not the user's.
  func facts(isAlive: () -> Bool?) -> Facts {
    guard let begun = startTime, isTheirs else { return Facts() }
    let facts = Facts(
      name: SmallFile.text("\(folder)/comm", bytesMax: 64).map(\.trimmed),
      executable: SymbolicLink.target(of: "\(folder)/exe"), unit: unit)
    // A process that is alive after it was read kept its number meanwhile.
    let isSame = isAlive() ?? (startTime == begun)
    return isSame ? facts : Facts()
  }

  private var unit: String? {
    guard let text = SmallFile.text("\(folder)/cgroup", bytesMax: Self.controlGroupBytesMax),
      text.utf8.count < Self.controlGroupBytesMax
    else { return nil }
    return ControlGroup.unit(text)
  }

  /// Field 22 of `stat`, in clock ticks since the boot (proc_pid_stat(5)). The name before it may hold anything.
  private var startTime: Substring? {
    guard let text = SmallFile.text("\(folder)/stat", bytesMax: 4096), let end = text.lastIndex(of: ")") else {
      return nil
    }
    let fields = text[text.index(after: end)...].split(separator: " ")
    return fields.count > 19 ? fields[19] : nil
  }

  /// By the effective user in `status`: the folder of a process that must not be looked into belongs to root.
  private var isTheirs: Bool {
    guard let text = SmallFile.text("\(folder)/status", bytesMax: 4096),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("Uid:") })
    else { return false }
    let users = line.split(whereSeparator: { $0 == "\t" || $0 == " " })
    return users.count > 2 && UInt32(users[2]) == userID
  }
}

/// The process that connected itself, even if its number is reused (Linux 6.5 and newer).
private struct ProcessHandle: ~Copyable {
  private let descriptor: Int32
  private let error: Int32

  init(ofPeer socket: Int32) {
    descriptor = prism_peer_process(socket)
    error = errno
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// nil: the kernel is older.
  var isAlive: Bool? {
    guard descriptor >= 0 else { return error == ENOPROTOOPT ? nil : false }
    var events = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&events, 1, 0) == 0
  }
}
