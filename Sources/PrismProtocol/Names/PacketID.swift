import PrismBase

/// The id of one packet: a UUID, version 7 (RFC 9562), the same for every attempt at its rows.
public struct PacketID: Hashable, Sendable, CustomStringConvertible {
  /// The 16 bytes, big-endian, as two halves.
  public let high: UInt64, low: UInt64

  /// Any 128 bits, as read back from the store.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A new id: 48 bits of `unixMilliseconds`, 74 random ones.
  public init(unixMilliseconds: Int64, using random: inout some RandomNumberGenerator) {
    let stamp = UInt64(max(0, unixMilliseconds)) << 16
    high = stamp | 0x7000 | UInt64.random(in: 0...0xFFF, using: &random)
    low = 0x8000_0000_0000_0000 | (random.next() >> 2)
  }

  /// When it was made.
  public var unixMilliseconds: Int64 { Int64(high >> 16) }

  /// nil unless `text` is a UUID in its 36-character form, in either case.
  public init?(_ text: some StringProtocol) {
    var halves: (high: UInt64, low: UInt64) = (0, 0)
    var position = 0
    for character in text.utf8 {
      if Self.isHyphen(at: position) {
        guard character == UInt8(ascii: "-") else { return nil }
      } else {
        guard let digit = Hex.digit(character) else { return nil }
        halves = (halves.high << 4 | halves.low >> 60, halves.low << 4 | UInt64(digit))
      }
      position += 1
    }
    guard position == Self.characters else { return nil }
    self.init(high: halves.high, low: halves.low)
  }

  /// nil unless there are 16.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The 16 bytes of the UUID.
  public var bytes: [UInt8] {
    [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
  }

  public var description: String {
    String(unsafeUninitializedCapacity: Self.characters) { text in
      var shift = 128
      for position in 0..<Self.characters {
        if Self.isHyphen(at: position) {
          text[position] = UInt8(ascii: "-")
        } else {
          shift -= 4
          text[position] = Hex.digit(of: UInt8(truncatingIfNeeded: shift < 64 ? low >> shift : high >> (shift - 64)))
        }
      }
      return Self.characters
    }
  }

  private static let characters = 36

  private static func isHyphen(at position: Int) -> Bool {
    position == 8 || position == 13 || position == 18 || position == 23
  }
}
