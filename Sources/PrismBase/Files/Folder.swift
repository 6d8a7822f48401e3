import Glibc

/// Folders of the file system. Blocks for as long as the disk does.
public enum Folder {
  /// Lists a folder. - Returns: its names, sorted, without `.` and `..`.
  public static func names(in folder: String) throws(FileError) -> [String] {
    guard let directory = opendir(folder) else { throw FileError(folder, cannot: "be opened") }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Makes what was renamed, made or removed in a folder survive a loss of power.
  public static func sync(_ folder: String) throws(FileError) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileError(folder, cannot: "be opened") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw FileError(folder, cannot: "be synced") }
  }
}
