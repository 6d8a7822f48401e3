/// Keys that a report's meta may not bring along unlooked at: those of the common information, and the daemon's own.
///
/// The scanner asks only "might it be one?", by first byte and length, which costs a report without such keys nothing.
public struct ReservedKeys: Sendable, Equatable {
  /// The exact names.
  public let keys: Set<String>
  private var firstBytes = SIMD4<UInt64>(repeating: 0)
  /// Bit n: a key of n bytes, all longer ones at 63.
  private var lengths: UInt64 = 0

  public init(_ keys: Set<String>) {
    self.keys = keys
    for key in keys {
      let first = key.utf8.first ?? 0
      firstBytes[Int(first >> 6)] |= 1 << UInt64(first & 63)
      lengths |= 1 << UInt64(min(key.utf8.count, 63))
    }
  }

  @inline(__always)
  func mayContain(_ key: ScannedString, in text: Span<UInt8>) -> Bool {
    if key.hasEscapes { return true }
    let first = key.range.isEmpty ? 0 : text[key.range.lowerBound]
    return lengths >> UInt64(min(key.range.count, 63)) & 1 == 1
      && firstBytes[Int(first >> 6)] >> UInt64(first & 63) & 1 == 1
  }
}
