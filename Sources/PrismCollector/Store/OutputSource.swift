import PrismConfig
import PrismOutputs
import PrismProtocol

/// Where one output reads from, and where it notes how far it came.
protocol OutputSource: Sendable {
  /// false: another replica feeds this output now.
  func lead() async throws(StoreFailure) -> Bool
  /// The id of the last report that was handed on; 0 before the first.
  func cursor() async throws(StoreFailure) -> Int64
  /// Reports behind `id` with their payloads. A report that commits later never has a lower id.
  func next(after id: Int64, limit: Int) async throws(StoreFailure) -> [StoredReport]
  /// Notes how far it came, and adds dead letters, in one commit: both survive a crash once this returns.
  func note(cursor id: Int64, refused: [RefusedReport]) async throws(StoreFailure)
  func deadCount() async throws(StoreFailure) -> DeadCount
  /// Dead letters behind `id`, by ascending ids.
  /// - Parameter onlyRequeued: those that an operator hands on again.
  func dead(after id: Int64, limit: Int, onlyRequeued: Bool) async throws(StoreFailure) -> [DeadReport]
  /// - Returns: how many dead letters have an id in the range.
  func change(dead ids: ClosedRange<Int64>, _ change: DeadChange) async throws(StoreFailure) -> Int
  func close() async
}

/// The dead letters of an output.
struct DeadCount: Sendable, Equatable {
  var letters = 0
  /// Those of reports that count as refused.
  var refused = 0

  /// The reports that were refused. The letter of any may be left where others of its request were dropped.
  var reports: Int { max(refused, min(1, letters)) }
}

/// A dead letter of an output: its report stays in the store as long as any other.
struct DeadReport: Sendable, Equatable {
  var id: Int64
  var cause: String
  /// When it was refused, milliseconds since 1970.
  var time: Int64
  /// An operator hands it on again.
  var isRequeued: Bool
  /// It counts as delivered (`RefusedReport`).
  var isDelivered = false

  var json: JSONValue {
    ["id": .int(id), "cause": .string(cause), "time": .int(time), "requeued": .bool(isRequeued)]
  }
}

/// An operator's change of dead letters.
enum DeadChange: String, CaseIterable { case requeue, drop }

/// How long reports are kept.
struct Retention: Sendable {
  /// They are deleted after as many days; nil: they are kept.
  var days: Int?
  /// Shorter times of some namespaces and types.
  var rules: [CollectorConfiguration.RetentionRule] = []
  /// Those past their days are not deleted before these outputs took them.
  var outputs: [String] = []
  /// Of those that wait for an output; with more `onLag` decides.
  var outputLagBytes: Int64 = 10_240 * 1_048_576
  var onLag = LagPolicy.hold
}

typealias LagPolicy = CollectorConfiguration.LagPolicy

extension LagPolicy {
  /// For `/readyz` under `hold`.
  static let warning =
    "an output is more than outputLagMByte behind: reports past retentionDay stay until it takes them"
  /// The line of the log under `skip`.
  static let skipped = "reports were deleted that an output had not taken: it was too far behind, and onLag is skip"
  /// The answer to a packet under `refuse`.
  static let cause = "an output is more than outputLagMByte behind, and onLag is refuse"
}
