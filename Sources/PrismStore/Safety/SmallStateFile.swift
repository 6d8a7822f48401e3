import Glibc

/// The few small files beside the database. A disk that fails them fails the database too, which then says so: here a
/// failure is passed over.
enum SmallStateFile {
  /// nil: there is none.
  static func read(_ path: String, bytesMax: Int = 4096) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: min(bytesMax, 65536))
    while bytes.count < bytesMax {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      guard count >= 0 else { return nil }
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// It is on the disk, whole, when this returns, or what was there before still is.
  static func write(_ text: String, to path: String) {
    let descriptor = open(path + ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    let bytes = Array(text.utf8)
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

  static func names(in folder: String) -> [String] {
    guard let entries = opendir(folder) else { return [] }
    defer { closedir(entries) }
    var names: [String] = []
    while let entry = readdir(entries) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) { name in
          name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names
  }
}

extension SmallStateFile {
  static func remove(_ path: String) { unlink(path) }
}
