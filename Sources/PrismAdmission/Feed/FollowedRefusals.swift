import PrismProtocol

/// Refused reports of a connection, kept while a reader follows the feed. Pure.
struct FollowedRefusals: Sendable {
  var areKept = false
  private var kept: [(name: ReportName, code: RefusalCode)] = []

  mutating func note(_ name: ReportName, _ code: RefusalCode) { if areKept { kept.append((name, code)) } }

  /// Takes those since the last call.
  mutating func take() -> [(name: ReportName, code: RefusalCode)] {
    defer { kept = [] }
    return kept
  }
}
