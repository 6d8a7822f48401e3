import PrismProtocol

/// `prismctl trace` for people: each row of the report, and below it what happened to it, in the order of time.
struct JourneyText {
  let text: String

  /// - Parameter columns: of the terminal; nil: there is none, so that no line is broken.
  init(_ rows: [JSONValue], columns: Int?) {
    text = rows.flatMap { Self.lines($0).flatMap { $0.wrapped(columns, indent: 2) } }.joined(separator: "\n")
  }

  private static func lines(_ row: JSONValue) -> [String] {
    func word(_ key: String) -> String? { row[key]?.string?.printable }
    func at(_ key: String, _ what: String) -> String? { word(key).map { "  \($0) \(what)" } }
    let isOnItsWay = ["waiting", "claimed"].contains(word("state"))
    let packet = word("packetId") ?? ""
    let times = "after \("attempt".counted(row["attempts"]?.int ?? 0))"
    let cause = (row["lastFailure"]?["cause"]?.string ?? "?").printable
    let failure = row["lastFailure"]?["time"]?.string.map { "  \($0) the namespace's last try failed: \(cause)" }
    let duplicate = row["duplicate"]?.bool == true ? "; the collector had it already" : ""
    let answer = "answered \(row["status"]?.int ?? 0) \(word("message") ?? "")"
    let user = row["userId"]?.int.map { ", of user \($0)" } ?? ""
    let dead = "dead letter \(row["id"]?.int ?? 0), \(times): \(answer)"
    return [
      "\(word("namespace") ?? "?") \(word("kind") ?? "?"): \(word("state") ?? "?")\(user)",
      at("createdTime", "created"), at("packetTime", "claimed for packet \(packet)"), failure,
      at("deliveredTime", "delivered, with a receipt, \(times)\(duplicate)"), at("time", dead),
      isOnItsWay ? "  not delivered yet: `prismctl explain \(word("namespace") ?? "")` tells what keeps it" : nil,
    ].compactMap { $0 }
  }
}
