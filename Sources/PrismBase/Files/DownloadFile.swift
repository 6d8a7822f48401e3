import Glibc

/// A file without a name that is written once and then read in pieces. It is gone with its last holder, also after a crash.
public final class DownloadFile: Sendable {
  /// Stays free for others on the disk.
  private static let freeBytesMin: UInt64 = 64 * 1024 * 1024

  /// O_TMPFILE, which glibc declares for GNU sources only.
  private static let unnamed = 0o20000000 | O_DIRECTORY

  private let descriptor: Int32
  private let folder: String

  /// - Parameter folder: on whose disk it lies.
  public init(folder: String) throws(FileError) {
    self.folder = folder
    let unnamed = open(folder, Self.unnamed | O_RDWR | O_CLOEXEC, 0o600)
    descriptor = unnamed >= 0 ? unnamed : Self.named(in: folder)
    guard descriptor >= 0 else { throw FileError(folder, cannot: "take a download") }
  }

  deinit { close(descriptor) }

  /// For file systems that know no file without a name.
  private static func named(in folder: String) -> Int32 {
    var template = Array("\(folder)/download.XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { return descriptor }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    unlink(template)
    return descriptor
  }

  /// - Returns: nil, or why they are not written. The disk is left 64 MiB.
  public func append(_ bytes: UnsafeRawBufferPointer) -> String? {
    var space = statvfs()
    if fstatvfs(descriptor, &space) == 0, space.f_bavail * space.f_frsize < Self.freeBytesMin + UInt64(bytes.count) {
      return "the disk of \(folder) has less than \(Self.freeBytesMin >> 20) MiB left"
    }
    var offset = 0
    while offset < bytes.count {
      let written = write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { return "the disk of \(folder) takes no download: \(String(cString: strerror(errno)))" }
      offset += written
    }
    return nil
  }

  /// The whole content; nothing may be appended any more.
  public func reading() throws(FileError) -> PieceFile {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { throw FileError(folder, cannot: "give a download back") }
    return try PieceFile(taking: copy, of: folder)
  }
}
