import Glibc
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// The folder of namespace files of one replica, and whether what it has counts.
///
/// Where replicas share what is served, a folder has the word only if it changed since this replica read it. Files that
/// stayed as they were while another replica's changed are old ones. So each replica remembers what it read, over restarts.
struct RemoteFolderState {
  static let nextFolder = "next"

  /// Whether other replicas have folders of their own.
  let isShared: Bool
  /// As they were read last.
  var files: [RemoteNamespace] = []
  let path: String
  private let memory: String
  /// Of the files that this replica read before; nil: it is new.
  private var known: String?
  /// The files when it was looked last, by their names, sizes, times and numbers; nil: they count as a change.
  private var marks: [Mark]?
  private var lookedAt: Duration?
  /// The names in `next/` at the last look, and those that left it since.
  private var next: (there: Set<String>, left: [String: Int64]) = ([], [:])

  private struct Mark: Equatable {
    var name: String
    var size: Int
    var inode: UInt
    var changedNanoseconds: Int64
  }

  init(folder: String, state: String, isShared: Bool) {
    (path, self.isShared, memory) = (folder, isShared, "\(state)/remote-folder")
    known = isShared ? SideFile.text(memory) : nil
  }

  /// Looks once a second at most.
  mutating func hasChanged(_ time: any TimeSource) -> Bool {
    if let lookedAt, time.uptime - lookedAt < .seconds(1) { return false }
    lookedAt = time.uptime
    let found = look()
    defer {
      // A file that changed just now may change once more within the same tick of the file system's clock.
      let newest = (found.map(\.changedNanoseconds).max() ?? 0) / 1_000_000
      marks = newest > time.unixMilliseconds - 2000 ? nil : found
    }
    return marks != found
  }

  private func look() -> [Mark] {
    var marks: [Mark] = []
    for name in (try? Folder.names(in: path)) ?? [] {  // a folder that is missing has no files
      var facts = stat()
      guard !name.hasPrefix("."), stat("\(path)/\(name)", &facts) == 0 else { continue }
      let nanoseconds = Int64(facts.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(facts.st_ctim.tv_nsec)
      marks.append(Mark(name: name, size: Int(facts.st_size), inode: facts.st_ino, changedNanoseconds: nanoseconds))
    }
    return marks
  }

  /// The files that are there were not taken over: they count as a change again.
  mutating func forget() { marks = nil }

  /// Of the files that were read last.
  private var digest: String {
    let text = files.map(\.json.text).joined(separator: "\n")
    return (try? Hashing.sha256(Array(text.utf8))).map { Hex.encode($0) } ?? ""
  }

  /// Whether the files that were read last have the word.
  func mayChange(_ served: ServedConfiguration) -> Bool {
    guard isShared, served.version > 0 else { return true }
    return known.map { $0 != digest } ?? false
  }

  /// The files that were read last were judged.
  mutating func remember() {
    guard isShared, known != digest else { return }
    known = digest
    SideFile.write(digest, to: memory)
  }

  /// Says what an operator has to do about the folder.
  func judge(_ served: ServedConfiguration, _ log: Logger) {
    // A folder without a file was unmounted, or emptied by mistake.
    if files.isEmpty && !served.served.isEmpty {
      log.fault(
        "collector.remote.empty",
        "the folder of remote configuration is empty, and no namespace is taken away: a file with `retired: true` does that",
        ["folder": path])
    } else {
      log.faultEnded("collector.remote.empty", "the folder of remote configuration has files again")
    }
    if isShared, !served.difference(from: files).isEmpty {
      log.fault(
        "collector.remote.behind",
        "another collector's folder of remote configuration is newer, and is served; bring its files here, too",
        ["folder": path])
    } else {
      log.faultEnded("collector.remote.behind", "the folder has what is served")
    }
  }

  /// Looks which files left `next/`. - Parameter updateTime: of what is served.
  mutating func lookAtNext(_ updateTime: Int64) {
    let names = Set(SideFile.names(in: FilePath.joined(path, Self.nextFolder)))
    for name in next.there.subtracting(names) { next.left[name] = updateTime }
    next.left = next.left.filter { !names.contains($0.key) }
    next.there = names
  }

  /// The newest change that was served when a namespace's file was seen to leave `next/`; nil: it was not. Absence says nothing.
  func leftNext(_ name: NamespaceName) -> Int64? { next.left["\(name).yaml"] }

  /// The entries of `next/` that differ from what is served, and the faults there.
  func candidate(_ served: ServedConfiguration) -> (entries: [RemoteNamespace], faults: [String]) {
    let next = FilePath.joined(path, Self.nextFolder)
    guard (try? Folder.names(in: next)) != nil else { return ([], []) }  // a folder that is missing has no files
    do throws(ConfigurationFaults) {
      return (try RemoteFolder.read(next).filter { !served.has($0) }, [])
    } catch { return ([], error.faults.map(\.description)) }
  }
}
