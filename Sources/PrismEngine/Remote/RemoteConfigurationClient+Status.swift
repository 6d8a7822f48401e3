import PrismBase
import PrismConfig
public import PrismControl
import PrismProtocol

// Texts about remote configuration: for the log, and for `prismctl status --json` under `remote`.
extension RemoteConfigurationClient {
  private static let changesShownMax = 100

  /// nil while remote configuration is off.
  public var status: RemoteReport? {
    guard let source = state.source else { return nil }
    var report = RemoteReport()
    (report.url, report.state) = (source.url, state.phase.name)
    (report.updateTime, report.version) = (state.layer.updateTime.map { Int($0) }, state.layer.version.map { Int($0) })
    (report.validUntil, report.isStale) = (state.layer.validUntil.map { Self.text($0) }, isStale)
    report.lastApplied = state.lastApplied.map { applied in
      var report = RemoteReport.Applied()
      (report.number, report.time) = (Int(applied.number), Self.text(applied.unixMilliseconds))
      return report
    }
    report.lastFailed = state.lastFailed.map { failed in
      var report = RemoteReport.Failed()
      report.number = failed.number.map { Int($0) }
      (report.time, report.reason) = (Self.text(failed.unixMilliseconds), failed.reason)
      return report
    }
    (report.failuresInRow, report.cause) = (state.failuresInRow, state.cause)
    report.nextAskInSeconds = state.nextAsk.map { Int(max(.zero, $0 - now).secondsRoundedUp) }
    report.namespaces = state.layer.entries.keys.sorted().map(\.text)
    report.probation = NamedValues(
      state.layer.trials.sorted { $0.key < $1.key }.map { name, trial in
        var report = RemoteReport.Trial()
        report.triedSeconds = Int(trial.tried.components.seconds)
        return .init(name.text, report)
      })
    report.takenBack = state.layer.returned.keys.sorted().map(\.text)
    return report
  }

  private static func text(_ milliseconds: Int64) -> String { RFC3339.text(unixMilliseconds: milliseconds) }

  /// True if the last signed answer has expired and no newer one came. Then an attacker holds answers back, the server
  /// is away, or a clock is wrong. The configuration in force stays.
  private var isStale: Bool {
    guard state.source?.publicKey != nil, let validUntil = state.layer.validUntil else { return false }
    return engine.parts.time.unixMilliseconds > validUntil
  }

  /// For metrics.
  public var figures: RemoteFigures {
    var figures = RemoteFigures()
    guard state.source != nil else { return figures }
    (figures.results, figures.number) = (state.results, state.layer.number ?? 0)
    (figures.namespaces, figures.onProbation) = (state.layer.entries.count, state.layer.trials.count)
    figures.lastAnswerMilliseconds = state.lastApplied?.unixMilliseconds ?? 0
    figures.isRefused = state.lastFailed != nil
    return figures
  }

  /// Says what is new since `before`.
  func tell(_ before: RemoteState) {
    if let failed = state.lastFailed, failed.reason != before.lastFailed?.reason {
      let number = failed.number.map { String($0) } ?? "unreadable"
      if state.layer.returned == before.layer.returned {
        log.error("remote configuration is refused, what was before stays", ["number": number, "cause": failed.reason])
      } else {
        log.error("remote configuration is taken back", ["number": number, "cause": failed.reason])
      }
    }
    if let cause = state.cause, state.failuresInRow > before.failuresInRow {
      log.fault("remote", "remote configuration can't be asked for; tried again", ["cause": cause])
    } else if state.failuresInRow == 0 {
      log.faultEnded("remote", "remote configuration is asked for again")
    }
    if isStale {
      log.fault(
        "remote.stale", "no signed remote configuration came before the last one expired; what is in force stays")
    } else {
      log.faultEnded("remote.stale", "signed remote configuration came again")
    }
    for name in state.layer.trials.keys.sorted() where before.layer.trials[name] == nil {
      log.info("remote configuration of a namespace is on probation", ["namespace": name.text])
    }
  }

  func tell(_ change: ConfigurationChange) {
    guard !change.isNothing else { return }
    log.info("remote configuration is in force", ["generation": String(change.new.generation)])
    let lines = SnapshotDiff(from: change.old, to: change.new).lines
    for line in lines.prefix(Self.changesShownMax) { log.info("remote configuration changes", ["change": line]) }
    if lines.count > Self.changesShownMax {
      log.info("remote configuration changes more", ["changes": String(lines.count - Self.changesShownMax)])
    }
  }
}

extension RemoteState {
  /// Inlined, it makes the optimizer of Swift 6.3.1 stop with an error of its own.
  @inline(never)
  fileprivate var nextAsk: Duration? { if case .resting(let until, _) = phase { until } else { nil } }
}

extension RemoteState.Phase {
  fileprivate var name: String {
    switch self {
    case .off: "off"
    case .resting(_, .interval): "resting"
    case .resting(_, .backoff): "backoff"
    case .asking: "asking"
    case .applying: "applying"
    case .stopped: "stopped"
    }
  }
}
