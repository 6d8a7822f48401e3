import CLinux
import Dispatch
import Glibc

/// An inotify descriptor with its watches. Letting go of it ends them.
final class FolderWatches {
  private static let foldersMax = 1024

  private let descriptor: Int32
  private let source: any DispatchSourceRead
  private var watches: [String: Int32] = [:]

  /// - Parameter descriptor: becomes this one's.
  /// - Parameter onEvent: called on `queue`. That there were events is all that counts, not of what kind, nor that some were
  ///   lost (an overflow).
  /// - Returns: nil where the kernel gave no descriptor.
  init?(_ descriptor: Int32, on queue: DispatchQueue, onEvent: @escaping @Sendable () -> Void) {
    guard descriptor >= 0 else { return nil }
    (self.descriptor, source) = (descriptor, DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue))
    source.setEventHandler {
      var buffer = [UInt8](repeating: 0, count: 16 * 1024)
      while read(descriptor, &buffer, buffer.count) > 0 {}
      onEvent()
    }
    source.setCancelHandler { close(descriptor) }
    source.activate()
  }

  deinit { source.cancel() }

  /// Watches these folders and no others, at most `foldersMax`.
  ///
  /// A folder may have been replaced by another of its name: adding its watch again gives that one's.
  /// - Returns: false where the kernel has no watch left for a folder (`fs.inotify.max_user_watches`).
  func place(on folders: Set<String>) -> Bool {
    var (placed, hasPlaced): ([String: Int32], Bool) = ([:], true)
    for folder in folders.sorted().prefix(Self.foldersMax) {
      let watch = prism_inotify_watch_folder(descriptor, folder)
      if watch >= 0 { placed[folder] = watch } else if errno == ENOSPC { hasPlaced = false }
    }
    let kept = Set(placed.values)
    for watch in Set(watches.values).subtracting(kept) { inotify_rm_watch(descriptor, watch) }
    watches = placed
    return hasPlaced
  }
}
