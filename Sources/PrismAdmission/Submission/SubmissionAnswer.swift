public import PrismProtocol

/// The answer to one report. A value: each input renders it in its own protocol.
public enum SubmissionAnswer: Sendable, Equatable {
  /// Committed, as `durability` says.
  case stored
  /// The id that the input gave is known: the report is stored once, now or before.
  case duplicate
  /// Left out by the `sample` of its type, and counted: there is nothing to hand over again.
  case sampled
  /// Not taken. `retryMilliseconds` says whether it makes sense to hand it over again.
  case refused(Refusal)

  /// nil if it was taken.
  public var refusal: Refusal? { if case .refused(let refusal) = self { refusal } else { nil } }
}
