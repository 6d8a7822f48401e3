import PrismBase

/// Files of the crash spool with the same fate, for a line of the log now and then. Pure.
struct FileTally {
  private static let interval: Duration = .seconds(60)

  private var count = 0
  private var last = (name: "", userID: UInt32(0), cause: "")
  private var told: Duration?

  mutating func note(_ name: String, userID: UInt32, count new: Int = 1, cause: String) {
    count += new
    last = (name, userID, cause)
  }

  /// Takes what was noted since the last line. - Returns: nil if there is nothing to tell, or a line came a moment ago.
  mutating func take(now: Duration) -> Logger.Fields? {
    guard count > 0, told.map({ now - $0 >= Self.interval }) ?? true else { return nil }
    defer { (count, told) = (0, now) }
    return [
      "count": String(count), "last": last.name, "last_user": String(last.userID), "last_cause": last.cause,
    ]
  }
}
