package import Glibc

/// Files that are small by nature: configuration, certificates, tokens, state, what `/proc` and `/sys` hold. Blocks for as
/// long as the disk does.
public enum SmallFile {
  /// The default limit: 1 MiB.
  public static let bytesMax = 1024 * 1024

  /// Reads a whole regular file. Never waits on a pipe or a device at the path.
  /// - Throws: also for a file over `bytesMax` bytes: what is cut must not be taken for the whole.
  public static func read(_ path: String, bytesMax: Int = bytesMax) throws(FileError) -> [UInt8] {
    try readWithMode(path, bytesMax: bytesMax).bytes
  }

  /// Reads a whole regular file. - Returns: also the permission bits of its mode. - Throws: as `read`.
  public static func readWithMode(
    _ path: String, bytesMax: Int = bytesMax
  ) throws(FileError) -> (bytes: [UInt8], mode: UInt32) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw FileError(path, cannot: "be opened") }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw FileError(path, cannot: "be read") }
    guard status.st_mode & S_IFMT == S_IFREG else { throw FileError(path, .notRegular) }
    return (try read(descriptor, of: path, bytesMax: bytesMax), status.st_mode & 0o7777)
  }

  /// Reads an open file to its end; a pipe too. - Parameter path: for the error.
  public static func read(_ descriptor: Int32, of path: String, bytesMax: Int) throws(FileError) -> [UInt8] {
    let bytes = try beginning(of: descriptor, path, bytes: bytesMax == .max ? .max : bytesMax + 1)
    guard bytes.count <= bytesMax else { throw FileError(path, .tooLarge(bytesMax: bytesMax)) }
    return bytes
  }

  /// Reads at most the first `bytesMax` bytes of a file. - Returns: nil if it is missing, or can't be read.
  public static func beginning(of path: String, bytesMax: Int) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return try? beginning(of: descriptor, path, bytes: bytesMax)  // a file that can't be read is as one that is missing
  }

  /// Reads a small text: at most the first `bytesMax` bytes. - Returns: nil if it is missing, can't be read, or is empty.
  public static func text(_ path: String, bytesMax: Int) -> String? {
    guard let bytes = beginning(of: path, bytesMax: bytesMax), !bytes.isEmpty else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads the first `count` bytes of an open file, or all if it has fewer. - Parameter path: for the error.
  public static func beginning(of descriptor: Int32, _ path: String, bytes count: Int) throws(FileError) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: min(count, 16 * 1024))
    while bytes.count < count {
      let read = Glibc.read(descriptor, &chunk, min(chunk.count, count - bytes.count))
      if read < 0 && errno == EINTR { continue }
      guard read >= 0 else { throw FileError(path, cannot: "be read") }
      if read == 0 { break }
      bytes += chunk[..<read]
    }
    return bytes
  }

  // MARK: Writing

  /// Replaces a file whole: writes beside it (`PATH.new`), syncs, renames, syncs the folder. When this returns, the content
  /// survives a loss of power; when it throws, the file is as it was.
  /// - Parameter mode: of the new file.
  public static func replace(_ path: String, with bytes: [UInt8], mode: UInt32 = 0o600) throws(FileError) {
    let fresh = path + ".new"
    do throws(FileError) {
      let descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode)
      guard descriptor >= 0 else { throw FileError(fresh, cannot: "be made") }
      defer { close(descriptor) }
      try write(bytes, to: descriptor, of: fresh)
      guard rename(fresh, path) == 0 else { throw FileError(path, cannot: "be replaced") }
    } catch {
      unlink(fresh)
      throw error
    }
    try Folder.sync(FilePath.folder(of: path))
  }

  /// Makes a file; never over another one. When this returns, the content is synced. - Throws: also if the file exists.
  public static func create(_ path: String, with bytes: [UInt8], mode: UInt32) throws(FileError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw FileError(path, cannot: "be made") }
    defer { close(descriptor) }
    do throws(FileError) { try write(bytes, to: descriptor, of: path) } catch {
      unlink(path)  // a part of it would keep the next try out
      throw error
    }
  }

  private static func write(_ bytes: [UInt8], to descriptor: Int32, of path: String) throws(FileError) {
    guard StandardStreams.write(bytes[...], to: descriptor) else { throw FileError(path, cannot: "be written") }
    guard fsync(descriptor) == 0 else { throw FileError(path, cannot: "be synced") }
  }
}

/// Names a file by its device and inode: to tell it from another file that was put in its place.
public struct FileIdentity: Hashable, Sendable {
  private let device: UInt64, inode: UInt64

  /// Of a file that was looked at.
  package init(_ facts: stat) { (device, inode) = (UInt64(facts.st_dev), UInt64(facts.st_ino)) }

  /// nil if nothing is there. - Parameter followsLinks: false: a symbolic link itself is meant, not what it points to.
  public init?(path: String, followsLinks: Bool = false) {
    var facts = stat()
    guard (followsLinks ? stat(path, &facts) : lstat(path, &facts)) == 0 else { return nil }
    self.init(facts)
  }
}

extension timespec {
  /// Milliseconds since 1970, cut to the years 1 to 9999: a file may say any time.
  package var unixMilliseconds: Int64 {
    Int64(min(max(tv_sec, -62_135_596_800), 253_402_300_799)) * 1000 + Int64(tv_nsec) / 1_000_000
  }
}
