import PrismProtocol

/// Keeps a collector that fails from being asked by several at once: after 5 failures in a row of a namespace, one
/// probe at a time until one succeeds (docs/delivery.md).
struct Circuit: Sendable, Equatable {
  static let failuresToOpen = 5

  private(set) var failuresInRow = 0
  /// The kind whose packet is out to see whether the collector is back.
  private(set) var probing: ReportKind?

  init(failuresInRow: Int = 0) { self.failuresInRow = max(0, failuresInRow) }

  var isOpen: Bool { failuresInRow >= Self.failuresToOpen }

  func allows(_ kind: ReportKind) -> Bool { !isOpen || probing == nil || probing == kind }

  mutating func started(_ kind: ReportKind) {
    if isOpen { probing = kind }
  }

  mutating func succeeded() { self = Circuit() }

  mutating func failed(_ kind: ReportKind) {
    failuresInRow += 1
    ended(kind)
  }

  /// An upload ended without a word on the collector's health.
  mutating func ended(_ kind: ReportKind) {
    if probing == kind { probing = nil }
  }
}
