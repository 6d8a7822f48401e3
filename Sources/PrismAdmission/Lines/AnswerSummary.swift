public import PrismProtocol

/// The answers to a number of requests, all in all: an adapter that has one status for them takes it from here.
public struct AnswerSummary: Sendable, Equatable {
  /// Answers to reports, greetings and questions.
  public internal(set) var answers = 0
  /// Bytes of memory that the answers to greetings and questions may take.
  var questionBytes = 0
  private var refusal: Refusal?
  /// The last answer to a request about records.
  public private(set) var record: RecordMark?

  /// No answer yet.
  public init() {}

  /// The refusal, if there was one request and it was refused.
  public var onlyRefusal: Refusal? { answers == 1 ? refusal : nil }

  mutating func refuse(_ refusal: Refusal) { self.refusal = refusal }

  mutating func note(_ answer: RecordAnswer) {
    switch answer {
    case .stored(let version): record = version.map { .current($0) }
    case .record(let found): record = found.map { .current($0.version) } ?? .absent
    case .list(_, let generation, _), .watching(_, _, let generation): record = .current(generation)
    case .refused(let refusal): refuse(refusal)
    }
  }
}

/// The state that an answer about records shows: an adapter for HTTP makes its status and its ETag of it.
public enum RecordMark: Sendable, Equatable {
  /// The version of the record, or the generation of its table.
  case current(Int64)
  /// There is no such record.
  case absent
}
