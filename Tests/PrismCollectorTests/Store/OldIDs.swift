import PrismProtocol

/// Ids of packets that were made some time ago.
struct OldIDs {
  /// Milliseconds since 1970.
  let now: Int64

  func made(daysAgo days: Int64) -> PacketID { id(now - days * 86_400_000) }

  /// On its first day.
  func made(in year: Int64) -> PacketID { id((year - 1970) * 365 * 86_400_000 + .random(in: 0..<86_400_000)) }

  private func id(_ milliseconds: Int64) -> PacketID {
    var random = SystemRandomNumberGenerator()
    return PacketID(unixMilliseconds: milliseconds, using: &random)
  }
}
