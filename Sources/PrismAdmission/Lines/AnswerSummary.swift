public import PrismProtocol

/// The answers to a number of requests, all in all: an adapter that has one status for them takes it from here.
public struct AnswerSummary: Sendable, Equatable {
  /// Answers to reports, greetings and questions.
  public internal(set) var answers = 0
  private var refusal: Refusal?

  /// No answer yet.
  public init() {}

  /// The refusal, if there was one request and it was refused.
  public var onlyRefusal: Refusal? { answers == 1 ? refusal : nil }

  mutating func refuse(_ refusal: Refusal) { self.refusal = refusal }
}
