import CLinux
public import PrismAdmission
public import PrismBase
public import PrismConfig

/// The crash spool (docs/crash-spool.md): a folder where programs that can't wait leave reports. They are taken at once, or at
/// the next start, in the name of the files' owner, and deleted after their commit. The report id is in the file's name, so a
/// report that was stored before a crash of the daemon is not stored again.
public actor CrashSpool {
  static let refusedSuffix = ".refused"
  static let refusedAgeMax: Duration = .seconds(7 * 86_400)
  static let unfinishedAgeMax: Duration = .seconds(3600)
  /// Files of one user; more of them are deleted, as beyond `crashSpool.userMByte`.
  static let userFilesMax = 10_000
  /// Of one user, in one round.
  static let reportsMax = 256
  /// The folder is looked at so often even if nothing is heard of it.
  static let pollInterval: Duration = .seconds(30)
  /// After a report that may be taken later.
  private static let retryPause: Duration = .seconds(1)
  private static let pauseMin: Duration = .milliseconds(50)

  private nonisolated let executor = DispatchQueueExecutor(label: "prism.crash-spool")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  let parts: Parts
  /// Files since the last line of the log on them.
  var refused = FileTally(), removed = FileTally()
  /// Files that stay in the folder.
  var left = Left()
  private var settings = DaemonConfiguration.CrashSpool()
  /// nil: the kernel reports no changes; the folder is still looked at every `pollInterval`.
  private var watches: FolderWatches?
  private var polling: Task<Void, Never>?
  private var rounds: Task<Void, Never>?
  /// That the last look at the folder took.
  var listingTime = Duration.zero
  /// Something happened that no round has looked at.
  private var isDue = false

  struct Left {
    /// By `NAMESPACE.TYPE` that is not configured: the uptime from which its reports are tried again.
    var held: [String: Duration] = [:]
    var others: [String: SpoolListing.Leftover] = [:]
  }

  /// The sink of reports, and everything that is said about them.
  struct Parts: Sendable {
    let sink: any SubmissionSink
    let time: any TimeSource
    let log: Logger
    let standardFolder: String
    let count: @Sendable (IngestCounters.InputResult) -> Void
  }

  /// - Parameter standardFolder: where clients leave reports by default.
  /// - Parameter count: counts a report of the spool, and its answer as a status of HTTP; 507 for one that was deleted.
  public init(
    sink: any SubmissionSink, time: any TimeSource = SystemTime(), log: Logger,
    standardFolder: String = "/var/spool/prism",
    count: @escaping @Sendable (IngestCounters.InputResult) -> Void
  ) {
    parts = Parts(sink: sink, time: time, log: log, standardFolder: standardFolder, count: count)
  }

  isolated deinit {
    polling?.cancel()
    rounds?.cancel()
  }

  /// Takes the reports of the folder that is configured from now on; without one, of clients' own default if it is this daemon's.
  public func follow(_ configured: DaemonConfiguration.CrashSpool) async {
    var new = configured
    if new.folder == nil, Folder.isOwn(parts.standardFolder) { new.folder = parts.standardFolder }
    guard settings != new else { return }
    await stop()
    settings = new
    guard new.folder != nil else { return }
    watches = FolderWatches(prism_inotify(), on: executor.queue) { [weak self] in
      self?.assumeIsolated { $0.look() }
    }
    look()
    polling = Task { [weak self, time = parts.time] in
      while !Task.isCancelled {
        do { try await time.sleep(for: Self.pollInterval) } catch { return }  // stopped
        await self?.look()
      }
    }
  }

  /// Takes no more reports. Those on their way are answered first.
  public func stop() async {
    settings = .init()
    polling?.cancel()
    rounds?.cancel()
    (polling, watches) = (nil, nil)
    await rounds?.value
  }

  private func look() {
    isDue = true
    guard rounds == nil, let folder = settings.folder else { return }
    let bytesMax = settings.userBytesMax
    rounds = Task { await takeReports(of: folder, bytesMax: bytesMax) }
  }

  private func takeReports(of folder: String, bytesMax: Int) async {
    while isDue && !Task.isCancelled {
      isDue = false
      // Before the files are listed, so that no change is missed; the folder may have been made just now.
      _ = watches?.place(on: [folder])
      let outcome = await round(folder, bytesMax: bytesMax)
      if outcome != .empty { isDue = true }
      // A user who fills the folder again and again gets a tenth of a core.
      let pause = max(Self.pauseMin, listingTime * 9, outcome == .mustWait ? Self.retryPause : .zero)
      do { try await parts.time.sleep(for: min(pause, Self.pollInterval)) } catch { break }  // stopped
    }
    rounds = nil
  }
}
