import COpenSSL
import PrismProtocol

/// Encrypts or decrypts one block in pieces. Decrypted bytes are not to be believed before `finish`.
final class CipherStream {
  static let tagBytes = 16

  private let cipher: Cipher
  private let isSealing: Bool
  private let context: OpaquePointer

  /// - Parameter associated: authenticated, not sent; of no use for CBC.
  /// - Throws: `keyLength` when `key` is not as long as `cipher` wants it.
  init(
    _ cipher: Cipher, key: Secret, nonce: [UInt8], associated: [UInt8], isSealing: Bool
  ) throws(PacketError) {
    guard key.count == cipher.keyBytes else { throw .keyLength }
    guard nonce.count == Self.nonceBytes(cipher), let context = EVP_CIPHER_CTX_new() else { throw .internal }
    (self.cipher, self.isSealing, self.context) = (cipher, isSealing, context)
    let method =
      switch cipher {
      case .aes128GCM: EVP_aes_128_gcm()
      case .aes256GCM: EVP_aes_256_gcm()
      case .aes128CBC: EVP_aes_128_cbc()
      }
    let isReady = key.withBytes {
      EVP_CipherInit_ex(context, method, nil, $0.baseAddress, nonce, isSealing ? 1 : 0) == 1
    }
    guard isReady else { throw .internal }
    guard cipher != .aes128CBC else { return }
    var ignored: Int32 = 0
    guard EVP_CipherUpdate(context, nil, &ignored, associated, Int32(associated.count)) == 1 else { throw .internal }
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  static func nonceBytes(_ cipher: Cipher) -> Int { cipher == .aes128CBC ? 16 : 12 }
  static func tagBytes(_ cipher: Cipher) -> Int { cipher == .aes128CBC ? 0 : tagBytes }

  /// The size of the block of this many bytes.
  static func blockBytes(_ cipher: Cipher, plainBytes: Int) -> Int {
    let text = cipher == .aes128CBC ? (plainBytes / 16 + 1) * 16 : plainBytes
    return nonceBytes(cipher) + text + tagBytes(cipher)
  }

  /// - Returns: what is ready of all input so far.
  func update(_ input: ArraySlice<UInt8>) throws(PacketError) -> [UInt8] {
    guard let inputCount = Int32(exactly: input.count) else { throw .tooLarge }
    var isDone = false
    let output = [UInt8](unsafeUninitializedCapacity: input.count + 16) { buffer, total in
      var count: Int32 = 0
      isDone = input.withUnsafeBufferPointer {
        EVP_CipherUpdate(context, buffer.baseAddress, &count, $0.baseAddress, inputCount) == 1
      }
      total = isDone ? Int(count) : 0
    }
    guard isDone else { throw isSealing ? .internal : .decryptionFailed }
    return output
  }

  /// The last bytes: of a sealed block with its tag.
  /// - Parameter tag: of the block to decrypt; empty for CBC.
  /// - Throws: `decryptionFailed` if the block was changed, or belongs elsewhere. With CBC that is not always seen.
  func finish(tag: [UInt8] = []) throws(PacketError) -> [UInt8] {
    let hasTag = cipher != .aes128CBC
    if hasTag, !isSealing {
      var tag = tag
      guard tag.count == Self.tagBytes,
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagBytes), &tag) == 1
      else { throw .decryptionFailed }
    }
    var rest = [UInt8](repeating: 0, count: 16)
    var count: Int32 = 0
    guard EVP_CipherFinal_ex(context, &rest, &count) == 1 else { throw isSealing ? .internal : .decryptionFailed }
    rest.removeLast(16 - Int(count))
    guard hasTag, isSealing else { return rest }
    var tag = [UInt8](repeating: 0, count: Self.tagBytes)
    guard EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagBytes), &tag) == 1 else { throw .internal }
    return rest + tag
  }
}
