import Glibc

/// The small files beside a database. A disk that fails them fails the database too, which then reports it: here a
/// failure is ignored.
public enum SideFile {
  /// At most the first `bytesMax` bytes. - Returns: nil if the file is missing, or can't be read.
  public static func bytes(_ path: String, bytesMax: Int = 4096) -> [UInt8]? {
    SmallFile.beginning(of: path, bytesMax: bytesMax)
  }

  /// `bytes` as text.
  public static func text(_ path: String, bytesMax: Int = 4096) -> String? {
    bytes(path, bytesMax: bytesMax).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Replaces a file whole, as `SmallFile.replace` does. If that fails, the file is as it was.
  public static func write(_ bytes: [UInt8], to path: String) {
    try? SmallFile.replace(path, with: bytes)  // the database has the same disk
  }

  /// Replaces a file whole by a text.
  public static func write(_ text: String, to path: String) { write(Array(text.utf8), to: path) }

  /// Syncs the names in a folder.
  public static func syncFolder(_ folder: String) {
    try? Folder.sync(folder)  // the database has the same disk
  }

  /// The names in a folder; empty if the folder is missing, or can't be read.
  public static func names(in folder: String) -> [String] {
    (try? Folder.names(in: folder)) ?? []  // a folder that is missing has no files
  }

  /// Deletes a file, if it is there.
  public static func remove(_ path: String) { unlink(path) }
}
