public import PrismProtocol
import PrismStore

/// Counts questions for the server's changes since the daemon started.
struct PullCounters: Sendable, Equatable {
  /// The result of a question; the raw value is a metric's label.
  enum Result: String, Sendable, CaseIterable {
    /// There was nothing new.
    case unchanged
    /// Operations were executed.
    case operations
    /// A whole table was taken.
    case table
    /// An answer that could not be executed as far as it goes: it is asked for again.
    case left
    /// There was no answer that can be believed.
    case failed
  }

  private(set) var questions: [Result: Int] = [:]
  /// Operations that were executed, and records of whole tables.
  private(set) var executed = 0
  private(set) var bytes = 0

  mutating func add(_ result: PullResult) {
    bytes += result.bytes
    if case .storeChanged = result.verdict { return count(.left) }
    guard case .applied(let outcome, _) = result.verdict else { return count(.failed) }
    executed += outcome.executed
    if outcome.end != .done { return count(.left) }
    count(result.isWholeTable ? .table : outcome.executed > 0 ? .operations : .unchanged)
  }

  private mutating func count(_ result: Result) { questions[result, default: 0] += 1 }
}

/// Questions for the server's changes, as `prismctl status` and the metrics show them.
struct PullStatus: Sendable, Equatable {
  var counters = PullCounters()
  /// Why tables could not be brought up to date.
  var faults: [RecordTableName: String] = [:]
}

/// A conflict of two changes of one record, for the report about it.
public struct RecordClashNews: Sendable, Equatable {
  /// The namespace of the record.
  public var namespace: NamespaceName
  /// The record, and both sides.
  public var clash: RecordClash

  public init(namespace: NamespaceName, clash: RecordClash) { (self.namespace, self.clash) = (namespace, clash) }
}
