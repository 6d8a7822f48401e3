import COpenSSL
import PrismProtocol

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
