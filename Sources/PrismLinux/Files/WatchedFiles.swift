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
  private let identity: FileIdentity, bytes: Int64
  private let modified: [Int], changed: [Int]

  /// nil when nothing is there.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    (identity, bytes) = (FileIdentity(status), Int64(status.st_size))
    modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
  }
}

/// Where to look for changes of a path. Lexical, with the symbolic links on the way read from the disk.
enum FilePaths {
  private static let linksMax = 16

  /// The folders in which a change can make one of `paths` another file: its own, and that of each link on the way to
  /// the file. For one that isn't there, the nearest that is.
  static func foldersToWatch(for paths: Set<String>) -> Set<String> {
    var (result, seen): (Set<String>, Set<String>) = ([], [])
    for path in paths {
      var place = path
      for _ in 0..<linksMax {
        let folder = FilePath.folder(of: place)
        if seen.insert(folder).inserted { result.formUnion(foldersToWatch(forFolder: folder)) }
        guard let target = target(of: place) else { break }
        place = target
      }
    }
    return result
  }

  private static func foldersToWatch(forFolder folder: String) -> Set<String> {
    Set(([folder] + linkedFolders(on: folder).map { FilePath.folder(of: $0) }).map(nearestExisting))
  }

  /// The names in a folder, without those that begin with a dot.
  static func entries(of folder: String) -> [String] {
    ((try? Folder.names(in: folder)) ?? []).filter { !$0.hasPrefix(".") }  // a folder that is missing has no files
  }

  /// The folders on the way that are links themselves, as `..data` of a mounted ConfigMap is.
  private static func linkedFolders(on folder: String) -> [String] {
    var (links, place) = ([String](), folder)
    while place != "/" && place != "." {
      if target(of: place) != nil { links.append(place) }
      place = FilePath.folder(of: place)
    }
    return links
  }

  private static func nearestExisting(_ folder: String) -> String {
    var place = folder
    while place != "/" && place != "." && access(place, F_OK) != 0 { place = FilePath.folder(of: place) }
    return place
  }

  /// Of a symbolic link, as a path; nil for anything else.
  private static func target(of path: String) -> String? {
    guard let target = SymbolicLink.target(of: path) else { return nil }
    return target.hasPrefix("/") ? target : FilePath.folder(of: path) + "/" + target
  }
}
