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
    let bytes = Array(text.utf8)
    guard bytes.count == 36, [8, 13, 18, 23].allSatisfy({ bytes[$0] == UInt8(ascii: "-") }) else { return nil }
    guard let binary = Hex.decode(bytes.enumerated().filter { ![8, 13, 18, 23].contains($0.offset) }.map(\.element))
    else { return nil }
    self.init(bytes: binary)
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
    let hex = Array(Hex.encode(bytes).utf8)
    return [hex[..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20...]]
      .map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-")
  }
}
