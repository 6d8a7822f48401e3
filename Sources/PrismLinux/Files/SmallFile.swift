import Glibc

/// Whole files that are small by nature: certificates, tokens, what `/proc` and `/sys` tell.
public enum SmallFile {
  public static let bytesMax = 1024 * 1024

  /// - Throws: what is wrong with the file, its path included; never what is in it.
  public static func read(_ path: String, bytesMax: Int = bytesMax) throws(FileError) -> [UInt8] {
    // Not blocking: a FIFO in the file's place must not hold us up.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw FileError(path, "cannot be opened", errno: errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw FileError(path, "is not a regular file")
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw FileError(path, "cannot be read", errno: errno) }
      if count == 0 { return bytes }
      guard bytes.count + count <= bytesMax else { throw FileError(path, "is over \(bytesMax) bytes") }
      bytes += chunk[..<count]
    }
  }
}

/// What is wrong with a file.
public struct FileError: Error, Equatable, Sendable, CustomStringConvertible {
  public let path: String
  public let description: String

  init(_ path: String, _ what: String, errno code: Int32? = nil) {
    self.path = path
    description = "\(path): \(what)\(code.map { ": " + String(cString: strerror($0)) } ?? "")"
  }
}
