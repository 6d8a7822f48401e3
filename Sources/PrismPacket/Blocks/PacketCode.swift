import COpenSSL
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

/// HMAC-SHA-256 over pieces, one after the other.
final class CodeStream {
  private let context: OpaquePointer

  init(key: Secret) throws(PacketError) {
    guard let context = key.withBytes({ prism_hmac_sha256_begin($0.baseAddress, $0.count) }) else { throw .internal }
    self.context = context
  }

  deinit { EVP_MAC_CTX_free(context) }

  func add(_ bytes: [UInt8]) throws(PacketError) {
    guard EVP_MAC_update(context, bytes, bytes.count) == 1 else { throw .internal }
  }

  /// The code of all pieces; nothing may be added behind.
  func finish() throws(PacketError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var count = code.count
    guard EVP_MAC_final(context, &code, &count, code.count) == 1, count == code.count else { throw .internal }
    return code
  }
}
