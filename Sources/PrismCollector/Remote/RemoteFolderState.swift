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
  private var watch: FolderWatch
  private let memory: String
  /// Of the files that this replica read before; nil: it is new.
  private var known: String?

  init(folder: String, state: String, isShared: Bool) {
    (watch, self.isShared, memory) = (FolderWatch(folder: folder), isShared, "\(state)/remote-folder")
    known = isShared ? SideFile.text(memory) : nil
  }

  var path: String { watch.folder }

  mutating func hasChanged(_ time: any TimeSource) -> Bool {
    watch.hasChanged(uptime: time.uptime, unixMilliseconds: time.unixMilliseconds)
  }

  /// The files that are there were not taken over: they count as a change again.
  mutating func forget() { watch.forget() }

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
    watch.note(isEmpty: files.isEmpty && !served.served.isEmpty, to: log)
    if isShared, !served.difference(from: files).isEmpty {
      log.fault(
        "collector.remote.behind",
        "another collector's folder of remote configuration is newer, and is served; bring its files here, too",
        ["folder": path])
    } else {
      log.faultEnded("collector.remote.behind", "the folder has what is served")
    }
  }

  /// The entries of `next/` that differ from what is served, and the faults there.
  func candidate(_ served: ServedConfiguration) -> (entries: [RemoteNamespace], faults: [String]) {
    let next = FilePath.joined(path, Self.nextFolder)
    guard (try? Folder.names(in: next)) != nil else { return ([], []) }  // a folder that is missing has no files
    do throws(ConfigurationFaults) {
      return (try RemoteFolder.read(next).filter { !served.has($0) }, [])
    } catch { return ([], error.faults.map(\.description)) }
  }
}
