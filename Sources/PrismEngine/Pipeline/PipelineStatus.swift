import PrismBase
import PrismConfig
import PrismControl
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
  var flow: FlowReport
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
  /// - Parameter usedUpKeyBlocks: the most blocks of the key, if it has encrypted them.
  init(
    _ settings: PipelineSettings, _ deliveries: PerKind<Delivery>, _ flow: FlowWindow, provenURL: String?,
    due: Duration?,
    isCircuitOpen: Bool, usedUpKeyBlocks: Int?, _ pulls: PullStatus, _ now: Instant
  ) {
    // A used up key is a fault of configuration, as long as it is configured.
    let keyFailure = usedUpKeyBlocks.flatMap { blocks in
      settings.key.map { key in
        RetryRecord.Failure(
          unixMilliseconds: now.unixMilliseconds, cause: KeyUse.usedUpText(id: key.id, blocksMax: blocks))
      }
    }
    let failures =
      RowKind.all.flatMap { [deliveries[$0].retry.lastFailure, deliveries[$0].lastSetBack].compactMap(\.self) }
      + (keyFailure.map { [$0] } ?? [])
    var window = flow
    window.roll(now)
    let held = RowKind.all.first { deliveries[$0].retry.pause?.reason == .held }
    self.init(
      isRetired: settings.configuration == nil,
      heldBy: keyFailure ?? held.flatMap { deliveries[$0].retry.lastFailure }, circuitIsOpen: isCircuitOpen,
      lastSuccess: RowKind.all.compactMap { deliveries[$0].lastSuccess }.max(),
      lastFailure: failures.max { $0.unixMilliseconds < $1.unixMilliseconds }, provenURL: provenURL,
      nextTryIn: due.map { max(.zero, $0 - now.uptime) },
      flow: FlowReport(
        usedBytes: window.usedBytes, allowedBytes: settings.configuration?.maxFlowBytes ?? 0,
        windowEndsInSeconds: Int(window.remaining(now).secondsRoundedUp)),
      windows: PerKind(each: { deliveries[$0].receiver.window }), counters: PerKind(each: { deliveries[$0].counters }),
      pulls: pulls)
  }
}
