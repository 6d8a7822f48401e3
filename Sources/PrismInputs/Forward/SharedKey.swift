import PrismBase
import PrismPacket
import PrismProtocol

/// The secret of `forward.sharedKeyFile`, and the handshake with it. Both ends prove that they know it; it is not sent.
struct SharedKey {
  private static let host = "prismd"

  let text: [UInt8]

  /// HELO.
  static func hello(nonce: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x92]
    result.append(msgpack: "HELO")
    result.append(0x83)
    result.append(msgpack: "nonce")
    result += [0xC4, UInt8(nonce.count)] + nonce
    result.append(msgpack: "auth")
    result.append(msgpack: "")
    result.append(msgpack: "keepalive")
    result.append(0xC3)
    return result
  }

  /// - Returns: PONG, and whether the other end knows the key.
  func answer(toPing ping: [UInt8], nonce: [UInt8]) -> (pong: [UInt8], isKnown: Bool) {
    guard let (host, salt, digest) = Self.parts(ping), let expected = self.digest(salt, host, nonce),
      Hashing.areEqual(expected, digest)
    else { return (Self.pong(isKnown: false, "the shared key is another one", []), false) }
    guard let own = self.digest(salt, Array(Self.host.utf8), nonce) else {
      return (Self.pong(isKnown: false, "the digest can't be made", []), false)
    }
    return (Self.pong(isKnown: true, "", own), true)
  }

  private func digest(_ salt: [UInt8], _ host: [UInt8], _ nonce: [UInt8]) -> [UInt8]? {
    guard let hash = try? Hashing.sha512(salt + host + nonce + text) else { return nil }
    return Array(Hex.encode(hash).utf8)
  }

  private static func pong(isKnown: Bool, _ reason: String, _ digest: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x95]
    result.append(msgpack: "PONG")
    result.append(isKnown ? 0xC3 : 0xC2)
    result.append(msgpack: reason)
    result.append(msgpack: host)
    result.append(msgpack: String(decoding: digest, as: UTF8.self))
    return result
  }

  /// `["PING", host, salt, digest, user, password]`; user and password are not used.
  private static func parts(_ ping: [UInt8]) -> (host: [UInt8], salt: [UInt8], digest: [UInt8])? {
    var reader = MsgPackReader(0..<ping.count)
    guard case .array(6) = try? reader.next(ping.span) else { return nil }
    var texts: [[UInt8]] = []
    for _ in 0..<4 {
      switch try? reader.next(ping.span) {
      case .string(let range), .binary(let range): texts.append(Array(ping[range]))
      default: return nil
      }
    }
    return texts[0] == Array("PING".utf8) ? (texts[1], texts[2], texts[3]) : nil
  }
}

extension [UInt8] {
  /// A string of at most 65,535 bytes.
  mutating func append(msgpack text: String) {
    let bytes = Array(text.utf8)
    switch bytes.count {
    case 0..<32: append(0xA0 | UInt8(bytes.count))
    case 32..<256: self += [0xD9, UInt8(bytes.count)]
    default: self += [0xDA, UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)]
    }
    self += bytes
  }
}
