import CLinux
import Dispatch
import Glibc
public import PrismBase

/// Reports when one of a set of files has changed: written in place, renamed over, linked to another target (as a
/// mounted ConfigMap is), added or removed.
///
/// inotify only triggers a check: the folders on the way to each file are watched, and once they are quiet for `settle`
/// the files' fingerprints are compared. So several writes of an editor are one change, and other events in a folder
/// are ignored. If the kernel can't watch (its instances or watches are used up), the files are checked every
/// `pollInterval`.
public actor FileWatcher {
  /// A folder that never becomes quiet is looked at so often nevertheless.
  static let unrestMax: Duration = .seconds(3)
  static let pollInterval: Duration = .seconds(2)
  private static let foldersMax = 1024

  private nonisolated let executor = DispatchQueueExecutor(label: "prism.files")
  private let time: any TimeSource
  private let settle: Duration
  private let log: Logger
  private let onChange: @Sendable () -> Void
  private let makeDescriptor: @Sendable () -> Int32

  private var files: Set<String> = [], folders: Set<String> = []
  private var known: [String: FileFingerprint?] = [:]
  private var descriptor: Int32 = -1
  private var source: (any DispatchSourceRead)?
  private var watches: [String: Int32] = [:]
  private var lastEvent: Duration = .zero
  private var settling: Task<Void, Never>?
  private var polling: Task<Void, Never>?

  /// Something happened that was not looked at yet.
  var isSettling: Bool { settling != nil }

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameter settle: how long nothing may happen before a change counts.
  /// - Parameter onChange: called once a change; it must not block.
  public init(
    time: any TimeSource = SystemTime(), settle: Duration = .milliseconds(300), log: Logger,
    onChange: @escaping @Sendable () -> Void
  ) {
    self.init(time: time, settle: settle, log: log, makeDescriptor: { prism_inotify() }, onChange: onChange)
  }

  init(
    time: any TimeSource, settle: Duration, log: Logger, makeDescriptor: @escaping @Sendable () -> Int32,
    onChange: @escaping @Sendable () -> Void
  ) {
    (self.time, self.settle, self.log) = (time, settle, log)
    (self.makeDescriptor, self.onChange) = (makeDescriptor, onChange)
  }

  isolated deinit {
    source?.cancel()
    polling?.cancel()
  }

  /// Replaces the watched files. Known files are compared with their state at the last reported change, so that no
  /// change before this call is missed; new files with their current state.
  ///
  /// - Parameter files: need not exist yet.
  /// - Parameter folders: every file in them counts, but for names that begin with a dot.
  public func watch(files: Set<String>, folders: Set<String>) {
    (self.files, self.folders) = (files, folders)
    open()
    let now = fingerprints()
    known = now.merging(known) { _, before in before }.filter { now[$0.key] != nil || isInWatchedFolder($0.key) }
    placeWatches()
    if known != now { noteEvent() }
  }

  /// Ends the watch; no change is reported afterwards.
  public func stop() {
    settling?.cancel()
    polling?.cancel()
    source?.cancel()
    (settling, polling, source, watches) = (nil, nil, nil, [:])
  }

  private func open() {
    guard source == nil else { return }
    descriptor = makeDescriptor()
    guard descriptor >= 0 else { return poll(because: String(cString: strerror(errno))) }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: executor.queue)
    source.setEventHandler { [weak self] in self?.assumeIsolated { $0.drain() } }
    source.setCancelHandler { [descriptor] in close(descriptor) }
    self.source = source
    source.activate()
  }

  private func poll(because cause: String) {
    guard polling == nil else { return }
    log.warning(
      "the kernel does not watch the files (fs.inotify.max_user_instances, max_user_watches); they are looked at instead",
      ["cause": cause])
    polling = Task { [weak self, time] in
      while !Task.isCancelled {
        do { try await time.sleep(for: Self.pollInterval) } catch { return }  // stopped
        await self?.look()
      }
    }
  }

  private func look() {
    if fingerprints() != known { noteEvent() }
  }

  /// The kind of event doesn't matter, nor that some of them were lost (an overflow): the files are checked.
  private func drain() {
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    while read(descriptor, &buffer, buffer.count) > 0 {}
    noteEvent()
  }

  private func noteEvent() {
    lastEvent = time.uptime
    guard settling == nil else { return }
    settling = Task { await settleDown(since: lastEvent) }
  }

  private func settleDown(since start: Duration) async {
    while true {
      let deadline = min(lastEvent + settle, start + Self.unrestMax)
      do { try await time.sleep(until: deadline) } catch { return }
      if time.uptime >= min(lastEvent + settle, start + Self.unrestMax) { break }
    }
    settling = nil
    compare()
  }

  private func compare() {
    placeWatches()
    let now = fingerprints()
    guard now != known else { return }
    known = now
    onChange()
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

  /// A folder may have been replaced by another of its name: adding its watch again gives that one's.
  private func placeWatches() {
    guard source != nil else { return }
    let wanted = FilePaths.foldersToWatch(for: files.union(filesInFolders()).union(folders.map { $0 + "/." }))
    var placed: [String: Int32] = [:]
    for folder in wanted.sorted().prefix(Self.foldersMax) {
      let watch = prism_inotify_watch_folder(descriptor, folder)
      if watch >= 0 {
        placed[folder] = watch
      } else if errno == ENOSPC {
        poll(because: String(cString: strerror(errno)))
      }
    }
    let kept = Set(placed.values)
    for watch in Set(watches.values).subtracting(kept) { inotify_rm_watch(descriptor, watch) }
    watches = placed
  }
}
