import Glibc
import PrismBase

/// Tells when a folder's files may have changed, by their names, sizes, times and numbers; looks once a second at most.
struct FolderWatch: Sendable {
  private struct Mark: Sendable, Equatable {
    var name: String
    var size: Int
    var inode: UInt
    var changedNanoseconds: Int64
  }

  let folder: String
  private var marks: [Mark]?
  private var lookedAt: Duration?

  init(folder: String) { self.folder = folder }

  /// Reports the present files as a change again: they were not taken over.
  mutating func forget() { marks = nil }

  mutating func hasChanged(uptime: Duration, unixMilliseconds: Int64) -> Bool {
    if let lookedAt, uptime - lookedAt < .seconds(1) { return false }
    lookedAt = uptime
    let found = look()
    defer {
      // A file that changed just now may change once more within the same tick of the file system's clock.
      let newest = (found.map(\.changedNanoseconds).max() ?? 0) / 1_000_000
      marks = newest > unixMilliseconds - 2000 ? nil : found
    }
    return marks != found
  }

  /// A folder without a file was unmounted, or emptied by mistake. - Parameter isEmpty: and there is something to be served.
  func note(isEmpty: Bool, to log: Logger) {
    guard isEmpty else {
      return log.faultEnded("collector.remote.empty", "the folder of remote configuration has files again")
    }
    log.fault(
      "collector.remote.empty",
      "the folder of remote configuration is empty, and no namespace is taken away: a file with `retired: true` does that",
      ["folder": folder])
  }

  private func look() -> [Mark] {
    var marks: [Mark] = []
    for name in (try? Folder.names(in: folder)) ?? [] {  // a folder that is missing has no files
      var facts = stat()
      guard !name.hasPrefix("."), stat("\(folder)/\(name)", &facts) == 0 else { continue }
      let nanoseconds = Int64(facts.st_ctim.tv_sec) * 1_000_000_000 + Int64(facts.st_ctim.tv_nsec)
      marks.append(Mark(name: name, size: Int(facts.st_size), inode: facts.st_ino, changedNanoseconds: nanoseconds))
    }
    return marks
  }
}
