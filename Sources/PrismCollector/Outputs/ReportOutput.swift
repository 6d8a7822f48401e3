/// Where reports are handed on to. One is fed by one task, page after page.
protocol ReportOutput: Sendable {
  /// Hands reports on in their order, and returns once the other side has them.
  /// - Returns: how many of them the other side refuses for good.
  /// - Throws: the other side may lack those behind `taken`; they come again.
  func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> Int
  /// Ends what `deliver` began.
  func close() async
}

/// Why an output takes nothing now. Never a report's content.
package struct OutputFailure: Error, Equatable, CustomStringConvertible {
  /// In words, for the log.
  package let description: String
  /// How many reports of the page the other side answered for, from the first on: they need not come again.
  var taken = 0
  /// How many of the page it refuses for good.
  var refused = 0

  init(_ description: String, taken: Int = 0, refused: Int = 0) {
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
  /// It survives a crash once this returns.
  func note(cursor id: Int64) async throws(StoreFailure)
  func close() async
}
