import PrismProtocol

/// Where reports are handed on to. One is fed by one task, page after page.
protocol ReportOutput: Sendable {
  /// How many reports it gets at a time.
  var batching: ReportBatching { get }
  /// Hands reports on in their order, and returns once the other side has them.
  /// - Returns: those that the other side refuses for good, and says so.
  /// - Throws: the other side may lack those behind `taken`; they come again.
  func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> [RefusedReport]
  /// Ends what `deliver` began.
  func close() async
}

extension ReportOutput {
  var batching: ReportBatching { ReportBatching() }
}

/// How many reports an output gets at a time.
struct ReportBatching: Sendable, Equatable {
  var reportsMax = 1000
  /// How long fewer of them wait for more.
  var patience: Duration = .zero
}

/// A report that an output's other side refuses for good.
struct RefusedReport: Sendable, Equatable {
  var id: Int64
  /// In words. Never a report's content.
  var cause: String
}

/// A dead letter of an output: its report stays in the store as long as any other.
struct DeadReport: Sendable, Equatable {
  var id: Int64
  var cause: String
  /// When it was refused, milliseconds since 1970.
  var time: Int64
  /// An operator hands it on again.
  var isRequeued: Bool

  var json: JSONValue {
    ["id": .int(id), "cause": .string(cause), "time": .int(time), "requeued": .bool(isRequeued)]
  }
}

/// An operator's change of dead letters.
enum DeadChange: String, CaseIterable { case requeue, drop }

/// Why an output takes nothing now. Never a report's content.
package struct OutputFailure: Error, Equatable, CustomStringConvertible {
  /// In words, for the log and `/readyz`.
  package let description: String
  /// How many reports of the page the other side answered for, from the first on: they need not come again.
  var taken = 0
  /// Those of them that it refuses for good.
  var refused: [RefusedReport] = []
  /// The other side's own number for it.
  var serverCode: Int?

  init(_ description: String, taken: Int = 0, refused: [RefusedReport] = []) {
    (self.description, self.taken, self.refused) = (description, taken, refused)
  }
}

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
  func deadCount() async throws(StoreFailure) -> Int
  /// Dead letters behind `id`, by ascending ids.
  /// - Parameter onlyRequeued: those that an operator hands on again.
  func dead(after id: Int64, limit: Int, onlyRequeued: Bool) async throws(StoreFailure) -> [DeadReport]
  /// - Returns: how many dead letters have an id in the range.
  func change(dead ids: ClosedRange<Int64>, _ change: DeadChange) async throws(StoreFailure) -> Int
  func close() async
}
