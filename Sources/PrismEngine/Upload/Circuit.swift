import PrismProtocol

/// Limits the requests to a collector that fails: after 5 failures in a row of a namespace, one probe at a time until
/// one succeeds (docs/delivery.md).
struct Circuit: Sendable, Equatable {
  static let failuresToOpen = 5

  private(set) var failuresInRow = 0
  /// The kind whose packet is out to see whether the collector is back.
  private(set) var probing: RowKind?

  init(failuresInRow: Int = 0) { self.failuresInRow = max(0, failuresInRow) }

  var isOpen: Bool { failuresInRow >= Self.failuresToOpen }

  func allows(_ kind: RowKind) -> Bool { !isOpen || probing == nil || probing == kind }

  mutating func started(_ kind: RowKind) {
    if isOpen { probing = kind }
  }

  mutating func succeeded() { self = Circuit() }

  mutating func failed(_ kind: RowKind) {
    failuresInRow += 1
    ended(kind)
  }

  /// An upload ended without a word on the collector's health.
  mutating func ended(_ kind: RowKind) {
    if probing == kind { probing = nil }
  }
}
