import PrismProtocol
import Synchronization

/// The reports that each user may still send of types with `perMinute`: a token bucket of one minute's reports for each user
/// and entry of a monitor list.
final class RateLimits: Sendable {
  struct Key: Hashable {
    var namespace: NamespaceName
    var type: String
    var userID: UInt32
  }

  private struct Bucket {
    var tokens: Double
    /// Milliseconds since 1970.
    var filledAt: Int64

    mutating func fill(perMinute: Double, now: Int64) {
      // A clock that was set back gives nothing.
      tokens = min(perMinute, tokens + Double(max(0, now - filledAt)) * perMinute / 60_000)
      filledAt = now
    }
  }

  /// Buckets that are remembered; past it the fullest is forgotten, which is the least that a user can gain.
  static let bucketsMax = 4096
  private let buckets = Mutex<[Key: Bucket]>([:])

  /// Takes a token. - Parameter now: milliseconds since 1970. - Throws: `rate_limited` if there is no token.
  func take(_ key: Key, perMinute: Int, now: Int64) throws(Refusal) {
    let rate = Double(perMinute)
    let missing = buckets.withLock { buckets -> Double in
      if buckets[key] == nil, buckets.count == Self.bucketsMax { Self.forgetFullest(&buckets) }
      var bucket = buckets[key] ?? Bucket(tokens: rate, filledAt: now)
      bucket.fill(perMinute: rate, now: now)
      let missing = max(0, 1 - bucket.tokens)
      if missing == 0 { bucket.tokens -= 1 }
      buckets[key] = bucket
      return missing
    }
    guard missing > 0 else { return }
    throw Refusal(
      .rateLimited, "this user has used up the \(perMinute) reports of this type that perMinute allows in a minute",
      retryMilliseconds: max(1, Int((missing * 60_000 / rate).rounded(.up))))
  }

  private static func forgetFullest(_ buckets: inout [Key: Bucket]) {
    guard let fullest = buckets.max(by: { $0.value.tokens < $1.value.tokens })?.key else { return }
    buckets[fullest] = nil
  }
}
