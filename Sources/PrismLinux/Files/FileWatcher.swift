import CLinux
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

  private nonisolated let executor = DispatchQueueExecutor(label: "prism.files")
  private let time: any TimeSource
  private let settle: Duration
  private let log: Logger
  private let onChange: @Sendable () -> Void
  private let makeDescriptor: @Sendable () -> Int32

  private var watched = WatchedFiles()
  private var inotify: FolderWatches?
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

  isolated deinit { polling?.cancel() }

  /// Replaces the watched files. Known files are compared with their state at the last reported change, so that no
  /// change before this call is missed; new files with their current state.
  ///
  /// - Parameter files: need not exist yet.
  /// - Parameter folders: every file in them counts, but for names that begin with a dot.
  public func watch(files: Set<String>, folders: Set<String>) {
    open()
    let isChanged = watched.watch(files: files, folders: folders)
    placeWatches()
    if isChanged { noteEvent() }
  }

  /// Ends the watch; no change is reported afterwards.
  public func stop() {
    settling?.cancel()
    polling?.cancel()
    (settling, polling, inotify) = (nil, nil, nil)
  }

  private func open() {
    guard inotify == nil else { return }
    inotify = FolderWatches(makeDescriptor(), on: executor.queue) { [weak self] in
      self?.assumeIsolated { $0.noteEvent() }
    }
    if inotify == nil { poll(because: String(cString: strerror(errno))) }
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
    if watched.haveChanged { noteEvent() }
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
    if watched.update() { onChange() }
  }

  private func placeWatches() {
    guard let inotify else { return }
    if !inotify.place(on: watched.foldersToWatch) { poll(because: String(cString: strerror(ENOSPC))) }
  }
}
