import PrismProtocol

/// `prismctl trace` for people: each row of the report, and below it what happened to it, in the order of time.
struct JourneyText {
  let text: String

  /// - Parameter columns: of the terminal; nil without a terminal, so that no line is broken.
  init(_ rows: [TraceReport], columns: Int?) {
    text = rows.flatMap { Self.lines($0).flatMap { $0.wrapped(columns, indent: 2) } }.joined(separator: "\n")
  }

  private static func lines(_ row: TraceReport) -> [String] {
    func at(_ time: String?, _ what: String) -> String? { time.map { "  \($0) \(what)" } }
    let times = "after \("attempt".counted(row.attempts ?? 0))"
    let duplicate = row.duplicate == true ? "; the collector had it already" : ""
    let failure = row.lastFailure.map { "  \($0.time) the namespace's last try failed: \($0.cause)" }
    let dead = "dead letter \(row.id ?? 0), \(times): answered \(row.status ?? 0) \(row.message ?? "")"
    return [
      "\(row.namespace) \(row.kind): \(row.state)\(row.userId.map { ", of user \($0)" } ?? "")",
      at(row.createdTime, "created"),
      at(row.packetTime, "claimed for packet \(row.packetId ?? "")"), failure,
      at(row.deliveredTime, "delivered, with a receipt, \(times)\(duplicate)"), at(row.time, dead),
      row.isOnItsWay ? "  not delivered yet: `prismctl explain \(row.namespace)` tells what keeps it" : nil,
    ].compactMap { $0 }
  }
}
