import PrismProtocol
import PrismStore

/// The synchronization of one namespace's records: when it sends, when it asks, and what came of it.
struct RecordWork: Sendable {
  /// When changes of this device are sent.
  var schedule = RecordSchedule()
  /// The last change that a synchronization takes.
  var bound: Int64 = 0
  /// When the server's changes are asked for.
  var pulls = PullSchedule()
  /// Changes of this device leave after the round of questions that is under way.
  var isUploadDue = false
  /// When each table's changes were last all here, on the uptime clock: changes of a `both` table leave after that.
  var pulledAt: [RecordTableName: Duration] = [:]
  /// Why a table could not be brought up to date; each is logged once.
  var faults: [RecordTableName: String] = [:]
  var counters = PullCounters()
  /// The last receipt that named a store.
  var receipt: StoreReceipt?
  /// Stores that were met since the start, the first one not counted.
  var meetings = 0
}

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
    if case .met = result.verdict { return count(.left) }
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
