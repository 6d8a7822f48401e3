import Glibc
import PrismBase

/// The files that a watcher looks at, and their fingerprints at the last reported change.
struct WatchedFiles {
  private var files: Set<String> = [], folders: Set<String> = []
  private var known: [String: FileFingerprint?] = [:]

  /// Replaces the watched files. Known files keep their old fingerprints, new files get their present ones.
  /// - Returns: whether a known file has changed since.
  mutating func watch(files: Set<String>, folders: Set<String>) -> Bool {
    (self.files, self.folders) = (files, folders)
    let now = fingerprints()
    known = now.merging(known) { _, before in before }.filter { now[$0.key] != nil || isInWatchedFolder($0.key) }
    return known != now
  }

  /// Whether a file differs from its state at the last reported change.
  var haveChanged: Bool { fingerprints() != known }

  /// Makes the present state the reported one. - Returns: whether it differed.
  mutating func update() -> Bool {
    let now = fingerprints()
    guard now != known else { return false }
    known = now
    return true
  }

  /// The folders in which a change of the files can show.
  var foldersToWatch: Set<String> {
    FilePaths.foldersToWatch(for: files.union(filesInFolders()).union(folders.map { $0 + "/." }))
  }

  private func fingerprints() -> [String: FileFingerprint?] {
    var result: [String: FileFingerprint?] = [:]
    for file in files.union(filesInFolders()) { result.updateValue(FileFingerprint(file), forKey: file) }
    return result
  }

  private func filesInFolders() -> [String] {
    folders.flatMap { folder in FilePaths.entries(of: folder).map { folder + "/" + $0 } }
  }

  private func isInWatchedFolder(_ path: String) -> Bool { folders.contains(FilePath.folder(of: path)) }
}

/// The identity of a file and the time of its last change, without reading it. Symbolic links are followed, so a link
/// to another target is another file.
struct FileFingerprint: Equatable, Sendable {
  private let device: UInt64, inode: UInt64, bytes: Int64
  private let modified: [Int], changed: [Int]

  /// nil when nothing is there.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    (device, inode, bytes) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
    modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
  }
}
