import PrismBase

/// The conditions that can keep a report from being sent, in the order in which they are checked (docs/delivery.md,
/// "Gates"). The raw value is the name in `prismctl explain` and status.
enum Gate: String, Sendable, CaseIterable {
  /// The daemon is stopping.
  case stopping
  /// The namespace has no configuration any more.
  case retired
  case url
  case isUpload
  case key
  /// The type's payloads are not uploaded.
  case isUploadPayload
  /// Older reports of the namespace are being brought over from a database that was set aside.
  case salvage
  case network
  /// The type leaves on unmetered networks only.
  case onlyWifi
  /// The metered window is used up.
  case flow
  /// A pause after a failure.
  case backoff
  /// Another upload of the namespace is out to see whether the collector is back.
  case circuit
  /// Metered: uploads within the interval are merged.
  case meteredInterval = "meteredIntervalSecond"
  /// The throttled timer.
  case timer = "periodicTimerSecond"
  /// The table of records is not declared any more.
  case table = "records"
  /// The time between two synchronizations of records.
  case recordInterval = "recordIntervalSecond"
}

/// The first gate that is shut, why, and when it opens.
struct ShutGate: Sendable, Equatable {
  var gate: Gate
  /// For people; with the key or the command that opens it where there is one.
  var reason: String
  /// nil: not by time alone.
  var opensIn: Duration?

  init(_ gate: Gate, _ reason: String, opensIn: Duration? = nil) {
    (self.gate, self.reason, self.opensIn) = (gate, reason, opensIn)
  }

  /// The reason, and the time that is left.
  var words: String { opensIn.map { "\(reason); next try in \($0.words)" } ?? reason }
}
