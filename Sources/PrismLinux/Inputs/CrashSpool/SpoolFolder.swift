import Glibc
import PrismBase
import PrismProtocol

final class SpoolFolder: Sendable {
  struct Fault: Error, CustomStringConvertible { let description: String }

  let path: String
  let descriptor: Int32

  /// - Throws: it is missing, belongs to another user, or others could delete each other's files in it.
  init(_ path: String) throws {
    (descriptor, self.path) = (try Folder.open(path), path)
    var facts = stat()
    // From here on `deinit` closes it, after a fault too.
    guard fstat(descriptor, &facts) == 0 else { throw Fault(description: String(cString: strerror(errno))) }
    if let fault = Self.fault(owner: facts.st_uid, mode: facts.st_mode) { throw Fault(description: fault) }
  }

  deinit { close(descriptor) }

  private static func fault(owner: UInt32, mode: UInt32) -> String? {
    // As the owner the daemon may delete every file in a sticky folder.
    if owner != geteuid() { return "it belongs to user \(owner), and must belong to the daemon's, \(geteuid())" }
    if mode & S_IWOTH != 0 && mode & S_ISVTX == 0 {
      return "everybody may delete files in it; run chmod 3733 on it"
    }
    return nil
  }

  /// Reads a file of the user that the listing named. One that has grown since is refused: memory was reserved for its
  /// size then. - Parameter beginningBytes: no more of it is read; nil: all.
  func read(_ file: SpoolListing.File, bytesMax: Int, beginningBytes: Int? = nil) throws(Refusal) -> [UInt8] {
    let opened = openat(descriptor, file.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard opened >= 0 else {
      let reason = String(cString: strerror(errno))
      throw Refusal(.badRequest, "a file can't be read (\(reason)): give it mode 0640 and the group of the folder")
    }
    defer { close(opened) }
    var facts = stat()
    // A link to a file of somebody else would report that one in its owner's name.
    guard fstat(opened, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, facts.st_nlink == 1,
      facts.st_uid == file.userID
    else { throw Refusal(.badRequest, "a file is no regular file of its user with one name") }
    do throws(FileError) {
      if let beginningBytes { return try SmallFile.beginning(of: opened, file.name, bytes: beginningBytes) }
      return try SmallFile.read(opened, of: file.name, bytesMax: min(bytesMax, file.bytes))
    } catch {
      throw Refusal(.badRequest, error.description)
    }
  }

  func isThere(_ file: SpoolListing.File) -> Bool {
    var facts = stat()
    return fstatat(descriptor, file.name, &facts, AT_SYMLINK_NOFOLLOW) == 0
      && SpoolListing.File(name: file.name, facts) == file
  }

  /// - Returns: false if the file is still there.
  func remove(_ name: String) -> Bool { unlinkat(descriptor, name, 0) == 0 || errno == ENOENT }

  /// Gives a file of a refused report a name under which it is left alone. - Returns: false if it kept its name.
  func setAside(_ name: String) -> Bool {
    renameat(descriptor, name, descriptor, name + CrashSpool.refusedSuffix) == 0 || errno == ENOENT
  }
}
