import PrismBase

/// The small files beside the database. A disk that fails them fails the database too, which then reports it: here a
/// failure is ignored.
enum SmallFile {
  /// nil: there is no file, or it can't be read.
  static func bytes(_ path: String, bytesMax: Int = 4096) -> [UInt8]? {
    PrismBase.SmallFile.beginning(of: path, bytesMax: bytesMax)
  }

  static func read(_ path: String) -> String? { bytes(path).map { String(decoding: $0, as: UTF8.self) } }

  static func write(_ text: String, to path: String) { write(Array(text.utf8), to: path) }

  /// Replaces a file whole, as `PrismBase.SmallFile.replace` does.
  static func write(_ bytes: [UInt8], to path: String) {
    try? PrismBase.SmallFile.replace(path, with: bytes)  // the database has the same disk
  }

  static func syncFolder(_ folder: String) {
    try? Folder.sync(folder)  // the database has the same disk
  }
}
