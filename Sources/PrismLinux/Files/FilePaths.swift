import Glibc
import PrismBase

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
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0 else { return nil }
    let target = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return target.hasPrefix("/") ? target : FilePath.folder(of: path) + "/" + target
  }
}
