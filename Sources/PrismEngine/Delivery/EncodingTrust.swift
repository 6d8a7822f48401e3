import PrismPacket
import PrismProtocol

/// Notices a receiver that announces an encoding and refuses each packet in it: then packets go in gzip for a while, instead of
/// twice each.
struct EncodingTrust: Sendable, Equatable {
  static let refusalsMax = 3
  static let pause: Duration = .seconds(3600)

  /// Packets in a row that were refused in their encoding, and taken in gzip.
  private var refusals = 0
  /// On the uptime clock; nil: packets go in the encoding that the receiver announces.
  private var gzipUntil: Duration?

  func isGzipOnly(now: Duration) -> Bool { gzipUntil.map { now < $0 } ?? false }

  /// A packet was taken. - Parameter entry: as it was when the answer came.
  mutating func accepted(_ entry: InFlightQueue.Entry, now: Duration) {
    if !entry.isPlain {
      refusals = 0
      return
    }
    // Halves leave in gzip because a report was refused.
    guard entry.leavesInGzip, !entry.isHalf else { return }
    refusals += 1
    guard refusals >= Self.refusalsMax else { return }
    (refusals, gzipUntil) = (0, now + Self.pause)
  }
}
