/// How long to leave a collector alone after failures in a row: full jitter, so that a fleet that failed together does
/// not come back together (docs/delivery.md).
///
///     failure       1     2     3     4  …     9 and on
///     at most       1 s   2 s   4 s   8 s      256 s, 300 s (configuration: up to 600 s)
enum Backoff {
  static let first: Duration = .seconds(1)
  static let longest: Duration = .seconds(300)
  static let longestForConfiguration: Duration = .seconds(600)

  /// - Parameter failures: in a row, this one counted; 1 or more.
  /// - Parameter random: any number; the pause is its share of the whole.
  static func pause(afterFailures failures: Int, isConfiguration: Bool, random: UInt64) -> Duration {
    let longest = isConfiguration ? longestForConfiguration : longest
    let doublings = min(max(failures, 1) - 1, 16)  // clamped before shifting: failures may be any number
    let ceiling = min(longest, first * (1 << doublings))
    return ceiling.share(random)
  }
}

extension Duration {
  /// A part of this duration, from nothing to all of it, as `random` says; in steps of a microsecond.
  func share(_ random: UInt64) -> Duration {
    let (seconds, attoseconds) = components
    let microseconds = UInt64(max(0, seconds)) * 1_000_000 + UInt64(max(0, attoseconds)) / 1_000_000_000_000
    return .microseconds(Int64(random % (microseconds + 1)))
  }
}
