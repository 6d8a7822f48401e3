import Glibc
import PrismEngine

extension ReportingPeer {
  /// Asks the kernel who connected. nil when `descriptor` is no connected Unix socket any more.
  init?(of descriptor: Int32) {
    guard let credentials = PeerCredentials(of: descriptor) else { return nil }
    self.init(
      userID: credentials.userID, groupIDs: credentials.groupIDs.union([credentials.groupID]),
      processID: credentials.processID)
    guard processID > 0, isStillTheirs else { return }
    processName = TextFile.read("/proc/\(processID)/comm", bytesMax: 64).map(TextFile.trimmed)
    executable = Self.linkTarget("/proc/\(processID)/exe")
  }

  /// The process may have ended and its number been given to somebody else's. (A process that must not be looked into
  /// belongs to root there.)
  private var isStillTheirs: Bool {
    var status = stat()
    return stat("/proc/\(processID)", &status) == 0 && (status.st_uid == userID || status.st_uid == 0)
  }

  private static func linkTarget(_ path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink(path, &buffer, buffer.count)
    return count > 0 ? String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
  }
}
