import Glibc

/// A file that is written once and has no name: it is gone with its last holder, after a kill, too.
public final class UnnamedFile {
  private let descriptor: Int32
  private let path: String
  /// Written so far.
  public private(set) var byteCount = 0

  /// - Parameter name: for errors, and for the moment until it has no name.
  public init(in folder: String, name: String) throws(FileError) {
    var template = Array("\(folder)/\(name)-XXXXXX".utf8CString)
    descriptor = mkstemp(&template)
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    guard descriptor >= 0 else { throw FileError(path, cannot: "be made") }
    unlink(path)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  public func append(_ bytes: [UInt8]) throws(FileError) {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + written, $0.count - written) }
      guard count > 0 || errno == EINTR else { throw FileError(path, cannot: "be written") }
      written += max(0, count)
    }
    byteCount += bytes.count
  }

  /// The bytes that were written. Nothing may be appended any more.
  public func finish() throws(FileError) -> PieceFile {
    try PieceFile(taking: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), of: path)
  }
}
