import CLinux
import Glibc

/// The watches of one inotify descriptor, which its owner closes.
struct FolderWatches {
  enum Outcome {
    case placed
    /// The kernel has no watch left for a folder (`fs.inotify.max_user_watches`).
    case exhausted
  }

  private static let foldersMax = 1024

  /// -1: no folder is watched.
  private let descriptor: Int32
  private var watches: [String: Int32] = [:]

  init(descriptor: Int32 = -1) { self.descriptor = descriptor }

  /// Watches these folders and no others, at most `foldersMax`.
  ///
  /// A folder may have been replaced by another of its name: adding its watch again gives that one's.
  mutating func place(on folders: Set<String>) -> Outcome {
    var placed: [String: Int32] = [:]
    var outcome = Outcome.placed
    for folder in folders.sorted().prefix(Self.foldersMax) {
      let watch = prism_inotify_watch_folder(descriptor, folder)
      if watch >= 0 {
        placed[folder] = watch
      } else if errno == ENOSPC {
        outcome = .exhausted
      }
    }
    let kept = Set(placed.values)
    for watch in Set(watches.values).subtracting(kept) { inotify_rm_watch(descriptor, watch) }
    watches = placed
    return outcome
  }

  /// Reads and drops all events: that there were some is all that counts.
  func readEvents() {
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    while read(descriptor, &buffer, buffer.count) > 0 {}
  }
}
