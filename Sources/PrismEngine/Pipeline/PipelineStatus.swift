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
  /// nil if no upload is requested.
  var nextTryIn: Duration?
  var flowUsedBytes: Int
  var flowAllowedBytes: Int
  var flowWindowEndsIn: Duration
  var counters: PerKind<EngineCounters>

  var isHeld: Bool { heldBy != nil }
}
