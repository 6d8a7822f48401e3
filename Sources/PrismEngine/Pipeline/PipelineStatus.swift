import PrismProtocol

/// One namespace's delivery, as `prismctl status` shows it.
struct PipelineStatus: Sendable {
  var isRetired: Bool
  /// The fault of configuration that the last try of a kind failed with; nil: it was another failure, or none.
  var heldBy: RetryRecord.Failure?
  var circuitIsOpen: Bool
  /// Milliseconds since 1970.
  var lastSuccess: Int64?
  var lastFailure: RetryRecord.Failure?
  /// nil: nothing is wished for.
  var nextTryIn: Duration?
  var flowUsedBytes: Int
  var flowAllowedBytes: Int
  var flowWindowEndsIn: Duration
  var counters: PerKind<EngineCounters>

  var isHeld: Bool { heldBy != nil }
}
