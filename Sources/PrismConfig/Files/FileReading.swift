import Glibc

/// Why a file could not be read, in the system's words.
package struct FileFault: Error, Equatable {
  package let reason: String
  let isMissing: Bool
  let isDenied: Bool
  /// The file was read, and holds something else than it should.
  var isContent = false
  init(errno code: Int32) {
    (reason, isMissing) = (String(cString: strerror(code)), code == ENOENT || code == ENOTDIR)
    isDenied = code == EACCES
  }
  init(_ reason: String, isContent: Bool = true) {
    (self.reason, isMissing, isDenied, self.isContent) = (reason, false, false, isContent)
  }
}

package enum FileReading {
  /// A whole regular file. Blocks for as long as the disk does; never on a pipe or a device.
  /// - Returns: its bytes and the permission bits of its mode.
  package static func read(_ path: String, bytesMax: Int) throws(FileFault) -> (bytes: [UInt8], mode: UInt32) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw FileFault(errno: errno) }
    defer { close(descriptor) }
    var information = stat()
    guard fstat(descriptor, &information) == 0 else { throw FileFault(errno: errno) }
    guard information.st_mode & S_IFMT == S_IFREG else { throw FileFault("not a regular file", isContent: false) }
    let bytes = try content(descriptor, bytesMax: bytesMax)
    return (bytes, information.st_mode & 0o7777)
  }

  /// One byte past the limit is asked for, so that a file that grew since its size was taken is noticed too.
  private static func content(_ descriptor: Int32, bytesMax: Int) throws(FileFault) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = Glibc.read(descriptor, &chunk, min(chunk.count, bytesMax + 1 - bytes.count))
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw FileFault(errno: errno) }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= bytesMax else {
        throw FileFault("over \(bytesMax) bytes, the most it may have", isContent: false)
      }
    }
  }

  /// The names in a folder, sorted, without `.` and `..`; nil when there is no such folder.
  static func names(in folder: String) throws(FileFault) -> [String]? {
    guard let directory = opendir(folder) else {
      if errno == ENOENT { return nil }
      throw FileFault(errno: errno)
    }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}
