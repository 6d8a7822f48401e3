import Glibc

/// Files that commands read and write, with errors that say what to do.
enum Files {
  /// - Throws: 66 (EX_NOINPUT).
  static func read(_ path: String) throws(Failure) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(Failure.noInput, "\(path): \(reason()): can't be read") }
    defer { close(descriptor) }
    var result: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Failure(Failure.noInput, "\(path): \(reason()): can't be read") }
      if count == 0 { return result }
      result += chunk[..<count]
    }
  }

  /// A new file; never over an existing one. - Throws: 73 (EX_CANTCREAT).
  static func create(_ path: String, mode: mode_t, _ bytes: [UInt8]) throws(Failure) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw Failure(Failure.cannotCreate, "\(path): \(reason()): not written") }
    defer { close(descriptor) }
    guard bytes.withUnsafeBytes({ Glibc.write(descriptor, $0.baseAddress, $0.count) }) == bytes.count,
      fsync(descriptor) == 0
    else { throw Failure(Failure.cannotCreate, "\(path): \(reason()): not written") }
  }

  static func reason() -> String { String(cString: strerror(errno)) }
}
