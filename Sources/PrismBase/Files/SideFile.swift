import Glibc
import PrismBase

/// The few small files beside the database. A disk that fails them fails the database too, which then reports it: here a
/// failure is ignored.
enum SmallStateFile {
  /// nil: there is no file.
  static func read(_ path: String, bytesMax: Int = 4096) -> String? {
    SmallFile.beginning(of: path, bytesMax: bytesMax).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Replaces a file whole, as `SmallFile.replace` does.
  static func write(_ text: String, to path: String) {
    try? SmallFile.replace(path, with: Array(text.utf8))  // the database has the same disk
  }

  static func syncFolder(_ folder: String) {
    try? Folder.sync(folder)  // the database has the same disk
  }

  static func names(in folder: String) -> [String] {
    (try? Folder.names(in: folder)) ?? []  // a folder that is missing has no files
  }

  static func remove(_ path: String) { unlink(path) }
}
