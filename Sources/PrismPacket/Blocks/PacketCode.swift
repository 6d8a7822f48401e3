import PrismBase
import PrismProtocol

/// `Prism-Mac`: what authenticates a packet of `aes-128-cbc`, whose blocks don't by themselves.
struct PacketCode {
  private let key: Secret

  /// The key of codes is made from the namespace's: HKDF-SHA-256, no salt, info `prism1 mac`, 32 bytes.
  init(key: Secret) throws(PacketError) { self.key = try Hashing.hkdfSHA256(key: key, info: "prism1 mac") }

  /// HMAC-SHA-256 of the context followed by the body.
  func code(context: [UInt8], body: [UInt8]) throws(PacketError) -> [UInt8] {
    try Hashing.hmacSHA256(key: key, context + body)
  }

  /// The same of a body in pieces. - Parameter next: nil behind the last one.
  func code(context: [UInt8], _ next: () throws(PacketError) -> [UInt8]?) throws(PacketError) -> [UInt8] {
    let code = try CodeStream(key: key)
    try code.add(context)
    while let piece = try next() { try code.add(piece) }
    return try code.finish()
  }

  /// - Throws: `macMismatch` if it is missing, not in lower-case hexadecimal, or of something else.
  func check(_ mac: String?, context: [UInt8], body: [UInt8]) throws(PacketError) {
    try Self.check(mac, try code(context: context, body: body))
  }

  static func check(_ mac: String?, _ expected: [UInt8]) throws(PacketError) {
    guard let mac, Hashing.areEqual(Array(mac.utf8), Array(Hex.encode(expected).utf8)) else { throw .macMismatch }
  }
}
