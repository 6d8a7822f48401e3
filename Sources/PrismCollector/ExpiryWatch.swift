/// Ends of what an operator set a time for. A time is over once each look of an hour said so, while the collector runs: a clock
/// that is ahead for a while ends nothing.
struct ExpiryWatch {
  private static let overTime: Duration = .seconds(3600)

  /// When a time was first seen to be over, on the uptime clock.
  private var overSince: [String: Duration] = [:]

  /// - Parameters:
  ///   - time: of what has this name, milliseconds since 1970.
  ///   - now: the same of the clock.
  ///   - uptime: the time since the start.
  mutating func isOver(_ name: String, at time: Int64, now: Int64, uptime: Duration) -> Bool {
    guard now >= time else {
      overSince[name] = nil
      return false
    }
    let since = overSince[name] ?? uptime
    overSince[name] = since
    return uptime - since >= Self.overTime
  }
}
