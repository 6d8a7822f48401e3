import PrismBase

/// When a call to the database must have ended.
struct Deadline: Sendable {
  private let at: Duration

  /// - Parameter interval: from now.
  init(_ interval: Duration) { at = SystemTime().uptime + interval }

  /// 0 when it passed, for `poll`.
  var millisecondsLeft: Int32 {
    let left = (at - SystemTime().uptime).components
    guard left.seconds >= 0, left.attoseconds >= 0 else { return 0 }
    return Int32(clamping: left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000 + 1)
  }
}
