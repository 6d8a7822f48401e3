import Glibc

/// Folders of the file system. Blocks for as long as the disk does.
public enum Folder {
  /// Lists a folder. - Returns: its names, sorted, without `.` and `..`.
  public static func names(in folder: String) throws(FileError) -> [String] {
    guard let directory = opendir(folder) else { throw FileError(folder, cannot: "be opened") }
    defer { closedir(directory) }
    var names: [String] = []
    forEachName(of: directory) { names.append($0) }
    return names.sorted()
  }

  /// Makes a folder that is missing, for its user alone, and those above it, which others may read.
  public static func make(_ path: String) throws(FileError) {
    var place = path.hasPrefix("/") ? "/" : ""
    let parts = path.split(separator: "/")
    for (index, part) in parts.enumerated() {
      place += (place.isEmpty || place.hasSuffix("/") ? "" : "/") + part
      let mode: mode_t = index == parts.count - 1 ? 0o700 : 0o755
      if mkdir(place, mode) == 0 {
        chmod(place, mode)  // all that the umask took
      } else if errno != EEXIST && access(place, F_OK) != 0 {
        throw FileError(place, cannot: "be made")
      }
    }
  }

  /// Opens a folder, so that its files can be reached while its path may lead elsewhere. - Returns: its descriptor.
  public static func open(_ folder: String) throws(FileError) -> Int32 {
    let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileError(folder, cannot: "be opened") }
    return descriptor
  }

  /// Reads an open folder, however many names it has. - Parameter body: takes each name but `.` and `..`, in the order of
  /// the file system; it may delete it.
  public static func forEachName(
    in descriptor: Int32, of folder: String, _ body: (String) -> Void
  ) throws(FileError) {
    // A descriptor of its own: closedir closes it, and it begins at the first name.
    let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { throw FileError(folder, cannot: "be opened") }
    guard let directory = fdopendir(copy) else {
      close(copy)
      throw FileError(folder, cannot: "be read")
    }
    defer { closedir(directory) }
    forEachName(of: directory, body)
  }

  private static func forEachName(of directory: OpaquePointer, _ body: (String) -> Void) {
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { body(name) }
    }
  }

  /// Whether a folder is there and this process's user is its owner.
  public static func isOwn(_ folder: String) -> Bool {
    var facts = stat()
    return stat(folder, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR && facts.st_uid == geteuid()
  }

  /// Gives a file that root made to the owner of a folder: commands of root's leave no file that its service can't open.
  public static func giveToOwner(_ path: String, of folder: String) {
    var facts = stat()
    if geteuid() == 0, stat(folder, &facts) == 0 { lchown(path, facts.st_uid, facts.st_gid) }
  }

  /// Makes what was renamed, made or removed in a folder survive a loss of power.
  public static func sync(_ folder: String) throws(FileError) {
    let descriptor = try open(folder)
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw FileError(folder, cannot: "be synced") }
  }
}
