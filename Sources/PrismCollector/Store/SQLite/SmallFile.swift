import Glibc

/// The small files beside the database. A disk that fails them fails the database too, which then says so: here a failure
/// is ignored.
enum SmallFile {
  /// nil: there is none, or it can't be read.
  static func bytes(_ path: String, bytesMax: Int = 4096) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: bytesMax)
    let count = Glibc.read(descriptor, &bytes, bytesMax)
    return count < 0 ? nil : Array(bytes[..<count])
  }

  static func read(_ path: String) -> String? { bytes(path).map { String(decoding: $0, as: UTF8.self) } }
  static func write(_ text: String, to path: String) { write(Array(text.utf8), to: path) }

  /// It is on the disk, whole, when this returns, or what was there before still is.
  static func write(_ bytes: [UInt8], to path: String) {
    let descriptor = open(path + ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    let isWritten = Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
    close(descriptor)
    guard isWritten, rename(path + ".new", path) == 0 else {
      unlink(path + ".new")
      return
    }
    syncFolder(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
  }

  static func syncFolder(_ folder: String) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
