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
  var flowUsedBytes: Int
  var flowAllowedBytes: Int
  var flowWindowEndsIn: Duration
  var counters: PerKind<EngineCounters>

  var isHeld: Bool { heldBy != nil }
  /// nil: the last attempt succeeded, or there was no attempt.
  var presentFailure: RetryRecord.Failure? {
    lastFailure.flatMap { (lastSuccess ?? 0) > $0.unixMilliseconds ? nil : $0 }
  }
  /// The collector at `provenURL` answered the last packet.
  var hasProof: Bool { lastSuccess != nil && presentFailure == nil || lastFailure?.code != nil }
}
