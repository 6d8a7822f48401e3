import Glibc

/// One address in numbers, or those with a common begin: `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`.
public struct NetworkRange: Hashable, Sendable, CustomStringConvertible {
  /// 4 or 16; those behind `bitCount` are 0.
  private let bytes: [UInt8]
  private let bitCount: Int

  /// nil for another text, and for a range with bits behind its length.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, let bytes = Self.bytes(of: String(parts[0])) else { return nil }
    var bitCount = bytes.count * 8
    if parts.count == 2 {
      guard parts[1].utf8.allSatisfy(\.isASCIIDigit), let given = UInt8(parts[1]),
        Int(given) <= bitCount
      else { return nil }
      bitCount = Int(given)
    }
    self.init(bytes, bitCount)
    guard self.bytes == bytes else { return nil }
  }

  private init(_ bytes: [UInt8], _ bitCount: Int) {
    self.bitCount = bitCount
    self.bytes = bytes.enumerated().map { place, byte in
      let kept = min(8, max(0, bitCount - 8 * place))
      return byte & ~UInt8(truncatingIfNeeded: 0xff >> kept)
    }
  }

  /// Whether an address in numbers is one of these.
  public func contains(_ address: String) -> Bool {
    guard let bytes = Self.bytes(of: address), bytes.count == self.bytes.count else { return false }
    return Self(bytes, bitCount).bytes == self.bytes
  }

  /// The range whose addresses are one sender for limits: an IPv4 address, and the first 64 bits of an IPv6 address, as a host
  /// chooses the others. - Returns: the text itself where it is no address.
  public static func ofOneSender(_ address: String) -> String {
    guard address.contains(":"), let bytes = bytes(of: address), bytes.count == 16 else { return address }
    return Self(bytes, 64).description
  }

  /// As it was given, in the shortest form.
  public var description: String {
    let family = bytes.count == 4 ? AF_INET : AF_INET6
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "" }
    let address = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    return bitCount == bytes.count * 8 ? address : "\(address)/\(bitCount)"
  }

  /// Of an IPv4 address within IPv6 the 4 of IPv4.
  private static func bytes(of address: String) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, address, &bytes) == 1 { return Array(bytes.prefix(4)) }
    guard inet_pton(AF_INET6, address, &bytes) == 1 else { return nil }
    return bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]) ? Array(bytes.suffix(4)) : bytes
  }
}
