import PrismConfig
import PrismProtocol

/// One namespace's delivery, as `prismctl status` shows it.
struct PipelineStatus: Sendable {
  var isRetired: Bool
  /// The fault of configuration of the last attempt of a kind; nil after another failure or a success.
  var heldBy: RetryRecord.Failure?
  var circuitIsOpen: Bool
  /// Milliseconds since 1970.
  var lastSuccess: Int64?
  var lastFailure: RetryRecord.Failure?
  /// The url of the collector that last accepted a packet in this run, or refused one with a code of docs/packet.md.
  var provenURL: String?
  /// nil if no upload is requested.
  var nextTryIn: Duration?
  var flow: FlowUse
  var windows: PerKind<SendWindow>
  var counters: PerKind<EngineCounters>
  var pulls = PullStatus()

  var isHeld: Bool { heldBy != nil }
  /// nil: the last attempt succeeded, or there was no attempt.
  var presentFailure: RetryRecord.Failure? {
    lastFailure.flatMap { (lastSuccess ?? 0) > $0.unixMilliseconds ? nil : $0 }
  }
  /// The collector at `provenURL` answered the last packet.
  var hasProof: Bool { lastSuccess != nil && presentFailure == nil || lastFailure?.code != nil }
}

extension PipelineStatus {
  init(of pipeline: isolated NamespacePipeline) {
    let (deliveries, now) = (pipeline.deliveries, Instant(pipeline.parts.time))
    let keyFailure = Self.keyFailure(of: pipeline, now)
    let failures = RowKind.all.compactMap { deliveries[$0].retry.lastFailure } + (keyFailure.map { [$0] } ?? [])
    var window = pipeline.flow
    window.roll(now)
    let held = RowKind.all.first { deliveries[$0].retry.pause?.reason == .held }
    self.init(
      isRetired: pipeline.settings.configuration == nil,
      heldBy: keyFailure ?? held.flatMap { deliveries[$0].retry.lastFailure },
      circuitIsOpen: pipeline.circuit.isOpen,
      lastSuccess: RowKind.all.compactMap { deliveries[$0].lastSuccess }.max(),
      lastFailure: failures.max { $0.unixMilliseconds < $1.unixMilliseconds }, provenURL: pipeline.proof.url,
      nextTryIn: pipeline.due.map { max(.zero, $0 - now.uptime) },
      flow: FlowUse(
        usedBytes: window.usedBytes, allowedBytes: pipeline.settings.configuration?.maxFlowBytes ?? 0,
        windowEndsIn: window.remaining(now)),
      windows: PerKind(each: { deliveries[$0].receiver.window }), counters: PerKind(each: { deliveries[$0].counters }),
      pulls: pipeline.records.status)
  }
  /// A used up key is a fault of configuration, as long as it is configured.
  private static func keyFailure(of pipeline: isolated NamespacePipeline, _ now: Instant) -> RetryRecord.Failure? {
    guard pipeline.hasUsedUpKey, let key = pipeline.settings.key else { return nil }
    let text = KeyUse.usedUpText(id: key.id, blocksMax: pipeline.parts.keys.blocksMax)
    return RetryRecord.Failure(unixMilliseconds: now.unixMilliseconds, cause: text)
  }
}
