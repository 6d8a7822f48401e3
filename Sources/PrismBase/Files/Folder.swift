import Glibc

/// Folders of the file system. Blocks for as long as the disk does.
public enum Folder {
  /// Lists a folder. - Returns: its names, sorted, without `.` and `..`.
  public static func names(in folder: String) throws(FileError) -> [String] {
    guard let directory = opendir(folder) else { throw FileError(folder, cannot: "be opened") }
    defer { closedir(directory) }
    return names(of: directory, namesMax: .max).sorted()
  }

  /// Opens a folder, so that its files can be reached while its path may lead elsewhere. - Returns: its descriptor.
  public static func open(_ folder: String) throws(FileError) -> Int32 {
    let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileError(folder, cannot: "be opened") }
    return descriptor
  }

  /// Lists an open folder. - Parameter namesMax: further names are left out.
  /// - Returns: its names, without `.` and `..`, in the order of the file system.
  public static func names(in descriptor: Int32, of folder: String, namesMax: Int) throws(FileError) -> [String] {
    // A descriptor of its own: closedir closes it, and it begins at the first name.
    let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { throw FileError(folder, cannot: "be opened") }
    guard let directory = fdopendir(copy) else {
      close(copy)
      throw FileError(folder, cannot: "be read")
    }
    defer { closedir(directory) }
    return names(of: directory, namesMax: namesMax)
  }

  private static func names(of directory: OpaquePointer, namesMax: Int) -> [String] {
    var names: [String] = []
    while names.count < namesMax, let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }

  /// Makes what was renamed, made or removed in a folder survive a loss of power.
  public static func sync(_ folder: String) throws(FileError) {
    let descriptor = try open(folder)
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw FileError(folder, cannot: "be synced") }
  }
}
