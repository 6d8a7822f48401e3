import PrismBase
import PrismConfig
import PrismProtocol

/// The state of remote configuration: when to ask, what to do with the answer, what to take back. A value that decides;
/// `RemoteConfigurationClient` performs its actions.
struct RemoteState: Sendable, Equatable {
  enum Phase: Sendable, Equatable {
    /// No `remote.url`. Next: asking.
    case off
    /// On the uptime clock. Next: asking; applying, for what is taken back.
    case resting(until: Duration, Rest)
    /// Next: applying; asking once more, for everything; resting.
    case asking(since: Int64?)
    /// The configuration is being checked and put in force. Next: resting.
    case applying(RemoteLayer, Cause)
    /// For good: the daemon is stopping.
    case stopped
  }

  enum Rest: Sendable, Equatable { case interval, backoff }

  enum Cause: Sendable, Equatable {
    case document(number: Int64)
    case probation([NamespaceName])
  }

  struct Applied: Sendable, Equatable {
    var number: Int64
    var unixMilliseconds: Int64
  }

  /// The last document that was refused or taken back; a server that did not answer is no such failure.
  struct Failed: Sendable, Equatable {
    /// nil: the answer could not be read so far.
    var number: Int64?
    var reason: String
    var unixMilliseconds: Int64
  }

  /// How a namespace on probation does.
  struct Sample: Sendable, Equatable {
    /// A packet was accepted that had left under the configuration in force.
    var isProven: Bool
    /// Rows wait to be sent, and nothing on this side keeps them but the last failure's pause.
    var isTrying: Bool
  }

  enum Event: Sendable, Equatable {
    /// At start and after every reload; nil: remote configuration is off.
    case configured(DaemonConfiguration.Remote?)
    case due
    /// A packet was accepted, and the answer named this version.
    case announced(Int64)
    /// The network came (back): try at that time, on the uptime clock.
    case network(tryAt: Duration)
    case answered(RemoteDocument)
    /// An answer came that can't be read, or isn't who it must be from.
    case unreadable(reason: String)
    /// There was no answer, or an invalid one.
    case failed(cause: String, isConfiguration: Bool, retryAfter: Duration?)
    /// The configuration of `apply` is in force. `changed`: namespaces whose configuration differs now, and whose
    /// packets had been accepted before.
    case applied(changed: Set<NamespaceName>)
    case notApplied(reason: String)
    /// The files that are new don't bear the layer: it was taken off.
    case dropped(reason: String)
    case sampled([NamespaceName: Sample])
    case stop
  }

  enum Action: Sendable, Equatable {
    case nothing
    /// Asks for changes since this time; nil: for everything. A question that is on its way is cancelled.
    case ask(since: Int64?)
    case apply(RemoteLayer)
    /// Give up the question that is on its way.
    case giveUp
  }

  /// Changes of one answer; over this the whole is asked for.
  static let changesMax = 1000
  static let probation: Duration = .seconds(600)
  static let sampleInterval: Duration = .seconds(10)
  /// A signer that jumps further ahead would leave no versions to those after it.
  static let versionStepMax: Int64 = 1_000_000

  private(set) var phase = Phase.off
  private(set) var source: DaemonConfiguration.Remote?
  private(set) var layer = RemoteLayer()
  private(set) var lastApplied: Applied?
  private(set) var lastFailed: Failed?
  /// Questions in a row without an answer, and the reason for the last failure.
  private(set) var failuresInRow = 0
  private(set) var cause: String?
  /// Since the start.
  private(set) var results: [RemoteFigures.Result: Int] = [:]
  /// The highest version that packets' answers named, and how much of it has been asked for.
  private var announced: Int64 = -1, heard: Int64 = -1
  private var sampledAt: Duration?

  init() {}

  /// Taken up from the last run.
  init(_ record: RemoteRecord, source: DaemonConfiguration.Remote) {
    (layer, lastApplied, lastFailed) = (record.layer, record.lastApplied, record.lastFailed)
    self.source = source
    // Another server's count means nothing to this one, nor another key's versions.
    if record.url != source.url || record.publicKey != source.publicKey { layer.updateTime = nil }
    if record.publicKey != source.publicKey { layer.forgetSigner() }
  }

  /// The record to keep over a restart; nil if it did not change.
  var record: RemoteRecord? {
    guard let source, layer != RemoteLayer() || lastApplied != nil || lastFailed != nil else { return nil }
    return RemoteRecord(
      url: source.url, publicKey: source.publicKey, layer: layer, lastApplied: lastApplied, lastFailed: lastFailed)
  }

  /// When `due` or a sample is to be given next, on the uptime clock.
  var due: Duration? {
    let rest: Duration? = if case .resting(let until, _) = phase { until } else { nil }
    return [rest, sampleDue].compactMap { $0 }.min()
  }

  /// nil: nothing is on probation.
  var sampleDue: Duration? {
    guard phase != .off, phase != .stopped, !layer.trials.isEmpty else { return nil }
    return sampledAt.map { $0 + Self.sampleInterval } ?? .zero
  }

  /// - Parameter random: any number, for the jitter of what is begun.
  mutating func handle(_ event: Event, now: Instant, random: UInt64) -> Action {
    switch (phase, event) {
    case (.stopped, _): return .nothing
    case (_, .stop):
      defer { phase = .stopped }
      if case .asking = phase { return .giveUp }
      return .nothing
    case (_, .configured(let source)): return configure(source)
    case (_, .dropped(let reason)):
      results[.takenBack, default: 0] += 1
      lastFailed = Failed(number: layer.number, reason: reason, unixMilliseconds: now.unixMilliseconds)
      layer = layer.emptied
      return .nothing
    case (_, .sampled(let samples)): return sample(samples, now)
    case (.resting(let until, _), .due): return now.uptime >= until ? ask(since: layer.updateTime) : .nothing
    case (_, .announced(let version)):
      announced = max(announced, version)
      return askIfAnnounced()
    case (.resting(let until, .backoff), .network(let tryAt)):
      phase = .resting(until: min(until, tryAt), .backoff)
      return .nothing
    case (.asking(let since), .answered(let document)): return take(document, since: since, now, random)
    case (.asking, .unreadable(let reason)): return refuse(nil, reason, now, random)
    case (.asking, .failed(let cause, let isConfiguration, let retryAfter)):
      failuresInRow += 1
      results[.failed, default: 0] += 1
      self.cause = cause
      let pause = Backoff.pause(afterFailures: failuresInRow, isConfiguration: isConfiguration, random: random)
      phase = .resting(until: now.uptime + max(pause, retryAfter ?? .zero), .backoff)
      return .nothing
    case (.applying(let layer, let cause), .applied(let changed)):
      return put(layer, cause, changed: changed, now, random)
    case (.applying(_, .document(let number)), .notApplied(let reason)): return refuse(number, reason, now, random)
    case (.applying(_, .probation(let names)), .notApplied(let reason)):
      for name in names { layer.trials[name] = nil }
      return refuse(layer.number, "what was before can't be taken back: \(reason)", now, random)
    case (.off, _), (.resting, _), (.asking, _), (.applying, _): return .nothing  // late events are normal
    }
  }

  /// A reload tries at once after any failure: its cause may be corrected.
  private mutating func configure(_ source: DaemonConfiguration.Remote?) -> Action {
    defer { self.source = source }
    guard let source else {
      layer = layer.emptied
      let wasAsking = if case .asking = phase { true } else { false }
      phase = .off
      return wasAsking ? .giveUp : .nothing
    }
    let isOtherKey = source.publicKey != self.source?.publicKey
    let isOtherServer = isOtherKey || source.url != self.source?.url
    if self.source != nil, isOtherServer { layer.updateTime = nil }
    if self.source != nil, isOtherKey { layer.forgetSigner() }
    switch phase {
    case .stopped: return .nothing
    case .asking, .applying: return isOtherServer ? ask(since: nil) : .nothing
    case .off: return ask(since: layer.updateTime)
    case .resting:
      let isTroubled = failuresInRow > 0 || lastFailed != nil
      return isTroubled || source != self.source ? ask(since: layer.updateTime) : .nothing
    }
  }

  private mutating func ask(since: Int64?) -> Action {
    heard = announced
    phase = .asking(since: since)
    return .ask(since: since)
  }

  /// Once for each version that is announced, and not while the server is left alone after failures.
  private mutating func askIfAnnounced() -> Action {
    guard case .resting(_, .interval) = phase, announced > max(heard, layer.number ?? -1) else { return .nothing }
    return ask(since: layer.updateTime)
  }

  private mutating func take(
    _ document: RemoteDocument, since: Int64?, _ now: Instant, _ random: UInt64
  ) -> Action {
    (failuresInRow, cause) = (0, nil)
    if let refusal = refusal(of: document, since: since, now.unixMilliseconds) {
      return refuse(document.number, refusal, now, random)
    }
    let isOfOtherCount = layer.store != nil && document.store != nil && layer.store != document.store
    let isMore = document.isFull || document.namespaces.count > Self.changesMax
    if since != nil, isMore || isOfOtherCount { return ask(since: nil) }
    var next = layer.with(document, isWhole: since == nil)
    if source?.publicKey != nil {
      if let refusal = refusal(of: next) { return refuse(document.number, refusal, now, random) }
      next.noteTimes(of: document, now: now.unixMilliseconds)
    }
    let cause = Cause.document(number: document.number)
    // Most answers say that nothing is new.
    if next.entries == layer.entries { return put(next, cause, changed: [], now, random) }
    phase = .applying(next, cause)
    return .apply(next)
  }

  private func refusal(of document: RemoteDocument, since: Int64?, _ now: Int64) -> String? {
    if let answers = document.since, answers != since {
      let asked = since.map { "what changed since \($0)" } ?? "everything"
      return "since: is \(answers), but \(asked) was asked for"
    }
    guard source?.publicKey != nil else { return nil }
    guard let version = document.version else {
      return "version: is missing; with remote.publicKey every answer needs one"
    }
    if let refusal = refusal(ofVersion: version) { return refusal }
    guard let expireTime = document.expireTime else {
      return "expireTime: is missing; with remote.publicKey every answer needs one"
    }
    let clock = max(now, layer.timeFloor ?? 0)
    guard expireTime <= clock else { return nil }
    let (then, here) = (RFC3339.text(unixMilliseconds: expireTime), RFC3339.text(unixMilliseconds: clock))
    return "expireTime: is \(then), and it is \(here) here; an old answer is played back, or a clock is wrong"
  }

  private func refusal(ofVersion version: Int64) -> String? {
    guard let floor = layer.version else { return nil }
    if version < floor { return "version: is \(version), older than \(floor), which was taken already" }
    guard version - floor > Self.versionStepMax else { return nil }
    return "version: is \(version), more than \(Self.versionStepMax) ahead of \(floor), which was taken last"
  }

  /// Under one version the server says one thing; but everything may be said again where it was forgotten here.
  private func refusal(of next: RemoteLayer) -> String? {
    guard let version = next.version, version == layer.version, layer.updateTime != nil,
      next.offered != layer.offered
    else { return nil }
    return "version: is \(version) as before, but what it says is not; a change needs a higher one"
  }

  private mutating func put(
    _ next: RemoteLayer, _ cause: Cause, changed: Set<NamespaceName>, _ now: Instant, _ random: UInt64
  ) -> Action {
    let before = layer
    layer = next
    switch cause {
    case .document(let number):
      results[next.entries == before.entries ? .unchanged : .applied, default: 0] += 1
      layer.beginTrials(changed, before: before)
      if before.trials.isEmpty { sampledAt = now.uptime }
      lastApplied = Applied(number: number, unixMilliseconds: now.unixMilliseconds)
      if layer.returned.isEmpty { lastFailed = nil }
    case .probation(let names):
      results[.takenBack, default: 0] += 1
      let minutes = Self.probation.components.seconds / 60
      let reason = names.map { "\($0): no packet was accepted for \(minutes) min; its previous one is taken back" }
      lastFailed = Failed(
        number: layer.number, reason: reason.joined(separator: "; "), unixMilliseconds: now.unixMilliseconds)
    }
    return rest(now, random)
  }

  private mutating func refuse(_ number: Int64?, _ reason: String, _ now: Instant, _ random: UInt64) -> Action {
    (failuresInRow, cause) = (0, nil)
    results[number == nil ? .unreadable : .refused, default: 0] += 1
    lastFailed = Failed(number: number, reason: reason, unixMilliseconds: now.unixMilliseconds)
    return rest(now, random)
  }

  /// The interval ± 10 %, so that a fleet doesn't ask in step.
  private mutating func rest(_ now: Instant, _ random: UInt64) -> Action {
    guard let interval = source?.interval else {
      phase = .off
      return .nothing
    }
    phase = .resting(until: now.uptime + interval * 9 / 10 + (interval / 5).share(random), .interval)
    return askIfAnnounced()
  }

  private mutating func sample(_ samples: [NamespaceName: Sample], _ now: Instant) -> Action {
    // A machine that slept did not try.
    let passed = min(now.uptime - (sampledAt ?? now.uptime), Self.sampleInterval * 2)
    sampledAt = now.uptime
    var failed: [NamespaceName] = []
    for (name, sample) in samples {
      guard var trial = layer.trials[name] else { continue }
      if sample.isTrying { trial.tried += passed }
      if trial.tried >= Self.probation { failed.append(name) }
      layer.trials[name] = sample.isProven ? nil : trial
    }
    failed.removeAll { layer.trials[$0] == nil }
    guard !failed.isEmpty, case .resting = phase else { return .nothing }
    var next = layer
    next.takeBack(failed.sorted())
    phase = .applying(next, .probation(failed.sorted()))
    return .apply(next)
  }
}
