import PrismBase

/// Public keys of X25519 (RFC 7748) as values.
enum X25519 {
  /// The points of small order: with them every sender has the same secret, which everybody knows
  /// (https://cr.yp.to/ecdh.html#validate).
  static let smallOrder: [[UInt8]] = [
    [UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31),
    Hex.decode("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")!,
    Hex.decode("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")!,
    [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f], [0xed] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
    [0xee] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
  ]

  /// The last bit of a key does not count.
  static func isOfSmallOrder(_ key: [UInt8]) -> Bool {
    guard let last = key.last else { return true }
    return smallOrder.contains(key.dropLast() + [last & 0x7f])
  }
}
