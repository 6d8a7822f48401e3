import Glibc

/// Why a file could not be read or written. Never has its content.
public struct FileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The cause, for a caller that has words of its own.
  public enum Cause: Equatable, Sendable {
    /// A call failed; `what` completes "cannot".
    case system(errno: Int32, what: String)
    /// A folder, a pipe, a device.
    case notRegular
    case tooLarge(bytesMax: Int)
  }

  /// The file or folder.
  public let path: String
  /// The cause, for a caller that has words of its own.
  public let cause: Cause

  init(_ path: String, _ cause: Cause) { (self.path, self.cause) = (path, cause) }

  /// With the current `errno`.
  init(_ path: String, cannot what: String) { self.init(path, .system(errno: errno, what: what)) }

  /// Nothing is at the path.
  public var isMissing: Bool {
    if case .system(let code, _) = cause { code == ENOENT || code == ENOTDIR } else { false }
  }

  /// The path, and what is wrong with it.
  public var description: String {
    switch cause {
    case .system(let code, let what): "\(path): cannot \(what): \(String(cString: strerror(code)))"
    case .notRegular: "\(path): is not a regular file"
    case .tooLarge(let bytesMax): "\(path): is over \(bytesMax) bytes"
    }
  }
}
