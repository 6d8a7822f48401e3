import Glibc

/// A file without a name that is written once and then read in pieces. It is gone with its last holder, also after a crash.
public final class UnnamedFile: Sendable {
  /// O_TMPFILE, which glibc declares for GNU sources only.
  private static let unnamed = 0o20000000 | O_DIRECTORY
  /// Stays free for others on the disk of a download.
  private static let freeBytesMin: UInt64 = 64 * 1024 * 1024

  private let descriptor: Int32
  private let folder: String
  private let path: String

  /// - Parameter folder: on whose disk it lies. - Parameter name: for errors.
  public init(in folder: String, name: String) throws(FileError) {
    (self.folder, path) = (folder, "\(folder)/\(name)")
    let unnamed = open(folder, Self.unnamed | O_RDWR | O_CLOEXEC, 0o600)
    descriptor = unnamed >= 0 ? unnamed : Self.unlinked(path)
    guard descriptor >= 0 else { throw FileError(path, cannot: "be made") }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// For file systems that know no file without a name.
  private static func unlinked(_ path: String) -> Int32 {
    var template = Array("\(path)-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { return descriptor }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    unlink(template)
    return descriptor
  }

  /// Written so far.
  public var byteCount: Int { max(0, lseek(descriptor, 0, SEEK_CUR)) }

  public func append(_ bytes: [UInt8]) throws(FileError) {
    guard StandardStreams.write(bytes[...], to: descriptor) else { throw FileError(path, cannot: "be written") }
  }

  /// Appends a part of a download. - Returns: nil, or why it is not written. The disk is left 64 MiB.
  public func download(_ bytes: UnsafeRawBufferPointer) -> String? {
    var space = statvfs()
    if fstatvfs(descriptor, &space) == 0, space.f_bavail * space.f_frsize < Self.freeBytesMin + UInt64(bytes.count) {
      return "the disk of \(folder) has less than \(Self.freeBytesMin >> 20) MiB left"
    }
    if StandardStreams.write(bytes, to: descriptor) { return nil }
    return "the disk of \(folder) takes no download: \(String(cString: strerror(errno)))"
  }

  /// The bytes that were written. Nothing may be appended any more.
  public func finish() throws(FileError) -> PieceFile {
    try PieceFile(taking: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), of: path)
  }
}
