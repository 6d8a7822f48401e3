public import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismProtocol

/// Reports of the machine itself (docs/host.md): `hostMetrics` at an interval, and `appBoot` once a boot.
public actor HostInput {
  private static let bootKey = "host.boot"
  private static let bootInterval: Duration = .seconds(5)
  private static let faultKey = "host"

  private nonisolated let executor = DispatchQueueExecutor(label: "prism.host")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let sink: any SubmissionSink
  private let time: any TimeSource
  private let files: HostFiles
  private let log: Logger
  private let source = SubmissionSource.daemon("host")
  private var settings = DaemonConfiguration.Host()
  private var tasks: [Task<Void, Never>] = []

  /// Nothing is reported before `follow`.
  public init(sink: any SubmissionSink, time: any TimeSource = SystemTime(), log: Logger) {
    self.init(sink: sink, time: time, files: HostFiles(), log: log)
  }

  init(sink: any SubmissionSink, time: any TimeSource, files: HostFiles, log: Logger) {
    (self.sink, self.time, self.files, self.log) = (sink, time, files, log)
  }

  deinit { for task in tasks { task.cancel() } }

  /// Reports as it is configured from now on.
  public func follow(_ new: DaemonConfiguration.Host) async {
    guard settings != new else { return }
    await stop()
    settings = new
    guard let interval = new.interval else { return }
    let namespace = new.namespace ?? DaemonConfiguration.Host.namespaceDefault
    tasks = [
      Task { await reportMetrics(to: namespace, every: interval) },
      Task { await reportBoot(to: namespace) },
    ]
  }

  /// Reports nothing more.
  public func stop() async {
    settings = .init()
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
    tasks = []
  }

  /// Counters of a report that was not stored go into the next one.
  private func reportMetrics(to namespace: String, every interval: Duration) async {
    var last = files.counters(uptime: time.uptime)
    while !Task.isCancelled {
      do { try await time.sleep(for: interval) } catch { return }  // stopped
      let now = files.counters(uptime: time.uptime)
      let meta = HostMetrics.meta(from: last, to: now, files.gauges())
      if await submit("hostMetrics", meta, id: nil, note: nil, to: namespace) { last = now }
    }
  }

  private func reportBoot(to namespace: String) async {
    // First: after most starts the boot is reported already, and systemd need not be asked.
    guard let bootID = files.bootID, let name = NamespaceName(namespace),
      await sink.note(Self.bootKey, of: name) != Array(bootID.utf8)
    else { return }
    while !Task.isCancelled {
      guard let boot = BootReport(files, time: time) else { return }
      if boot.isComplete {
        let note = BatchNote(namespace: name, key: Self.bootKey, value: Array(boot.bootID.utf8))
        if await submit("appBoot", boot.meta, id: ReportID("boot-\(boot.bootID)"), note: note, to: namespace) { return }
      }
      do { try await time.sleep(for: Self.bootInterval) } catch { return }  // stopped
    }
  }

  /// - Returns: whether it is stored.
  private func submit(
    _ type: String, _ meta: JSONValue, id: ReportID?, note: BatchNote?, to namespace: String
  ) async -> Bool {
    let report = Submission(type, in: namespace, meta: meta.bytes, reportID: id, from: source)
    guard let refusal = await sink.submit(report, note: note) else {
      log.faultEnded(Self.faultKey, "reports of the host are stored again")
      return true
    }
    if refusal != .stopping {
      log.fault(
        Self.faultKey, "reports of the host are refused",
        ["type": type, "namespace": namespace, "cause": refusal.message])
    }
    // If its type is not in the list, for example, a boot is not tried for ever.
    return note != nil && refusal.retryMilliseconds == nil && refusal != .stopping
  }
}
