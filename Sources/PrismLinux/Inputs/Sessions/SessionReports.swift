import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismProtocol

/// Reports what programs did in each hour as `appHealth`, in each namespace that takes this type (docs/sessions.md).
public actor SessionReports {
  /// Between two looks: the time in use that a kill may cost.
  static let interval: Duration = .seconds(300)

  private let server: IngestServer
  private let configuration: @Sendable () -> Snapshot
  private let time: any TimeSource
  private let log: Logger
  private let source = SubmissionSource.daemon("sessions")
  private var task: Task<Void, Never>?

  /// Nothing is reported before `start`.
  public init(
    server: IngestServer, configuration: @escaping @Sendable () -> Snapshot, time: any TimeSource = SystemTime(),
    log: Logger
  ) {
    (self.server, self.configuration, self.time, self.log) = (server, configuration, time, log)
  }

  /// Looks at once, for what an earlier run left, and then at an interval.
  public func start() {
    guard task == nil else { return }
    task = Task {
      while !Task.isCancelled {
        await look()
        do { try await time.sleep(for: Self.interval) } catch { return }  // stopped
      }
    }
  }

  /// Notes the time in use until now, and reports nothing more.
  public func stop() async {
    task?.cancel()
    await task?.value
    await server.lookAtSessions()
  }

  /// Counts the time in use, and reports the hours that are over. An hour is reported in the transaction that forgets it.
  func look() async {
    await server.lookAtSessions()
    for namespace in configuration().namespaces.values where namespace.countsHealth {
      guard
        let hour = await server.note(AppHealth.Hour.noteKey, of: namespace.name).flatMap({ AppHealth.Hour(note: $0) })
      else { continue }
      await report(hour, to: namespace.name)
    }
  }

  private func report(_ hour: AppHealth.Hour, to namespace: NamespaceName) async {
    let reports = hour.metas.enumerated().map { index, meta in
      Submission(
        ReportType.appHealth.text, in: namespace.text, meta: meta.bytes,
        reportID: ReportID("health-\(hour.book)-\(hour.number)-\(index)"), from: source)
    }
    let done = BatchNote(namespace: namespace, key: AppHealth.Hour.noteKey, value: [])
    let answers = await server.submit(SubmissionGroup(reports, note: done, userID: source.peer.accountID))
    guard let refusal = answers.lazy.compactMap(\.refusal).first, refusal != .stopping else { return }
    log.fault(
      "sessions", "an hour of sessions could not be reported",
      ["namespace": namespace.text, "cause": refusal.message])
  }
}
