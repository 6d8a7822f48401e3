import COpenSSL
import PrismProtocol

/// Encrypts and decrypts the blocks of packets (docs/packet.md, "A block") under one key.
///
/// Holds OpenSSL's contexts, so one serves many blocks; not for two threads at once.
final class BlockCipher {
  private static let tagBytes = 16

  private let cipher: Cipher
  private let method: OpaquePointer
  private let context: OpaquePointer
  private let key: Secret

  /// - Throws: `keyLength` when `key` is not as long as `cipher` wants it.
  init(_ cipher: Cipher, key: Secret) throws(PacketError) {
    guard key.count == cipher.keyBytes else { throw .keyLength }
    let name =
      switch cipher {
      case .aes128GCM: "AES-128-GCM"
      case .aes256GCM: "AES-256-GCM"
      case .aes128CBC: "AES-128-CBC"
      }
    guard let method = EVP_CIPHER_fetch(nil, name, nil) else { throw .internal }
    guard let context = EVP_CIPHER_CTX_new() else {
      EVP_CIPHER_free(method)
      throw .internal
    }
    (self.cipher, self.method, self.context, self.key) = (cipher, method, context, key)
  }

  deinit {
    EVP_CIPHER_CTX_free(context)
    EVP_CIPHER_free(method)
  }

  var nonceBytes: Int { cipher == .aes128CBC ? 16 : 12 }
  /// The most bytes that a block has beyond its plaintext.
  var overheadBytesMax: Int { nonceBytes + 16 }

  /// The size of the block that `seal` makes of this many bytes.
  func blockBytes(plainBytes: Int) -> Int {
    cipher == .aes128CBC ? nonceBytes + (plainBytes / 16 + 1) * 16 : nonceBytes + plainBytes + Self.tagBytes
  }

  /// Appends nonce, ciphertext and tag of `plain` to `result`.
  /// - Parameter associated: authenticated, not sent; of no use for CBC.
  func seal(
    _ plain: UnsafeRawBufferPointer, associated: [UInt8], nonce: [UInt8], to result: inout [UInt8]
  ) throws(PacketError) {
    guard initialize(EVP_EncryptInit_ex, nonce) else { throw .internal }
    try associate(associated, EVP_EncryptUpdate)
    result += nonce
    try append(plain, capacity: plain.count + 16, to: &result, update: EVP_EncryptUpdate, final: EVP_EncryptFinal_ex)
    guard cipher != .aes128CBC else { return }
    var tag = [UInt8](repeating: 0, count: Self.tagBytes)
    guard EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagBytes), &tag) == 1 else { throw .internal }
    result += tag
  }

  /// - Throws: `decryptionFailed` for a block that is too short, was changed, or belongs elsewhere.
  func open(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8] {
    let tagBytes = cipher == .aes128CBC ? 0 : Self.tagBytes
    guard block.count >= nonceBytes + tagBytes, Int32(exactly: block.count) != nil else { throw .decryptionFailed }
    let isReady = block.withUnsafeBufferPointer { block in
      guard initialize(EVP_DecryptInit_ex, block.baseAddress) else { return false }
      guard tagBytes > 0 else { return true }
      let tag = UnsafeMutableRawPointer(mutating: block.baseAddress! + block.count - tagBytes)
      return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), tag) == 1
    }
    guard isReady else { throw .internal }
    try associate(associated, EVP_DecryptUpdate)
    var isOpen = false
    let sealed = block.dropFirst(nonceBytes).dropLast(tagBytes)
    let plain = [UInt8](unsafeUninitializedCapacity: sealed.count + 16) { buffer, total in
      var (count, rest) = (Int32(0), Int32(0))
      isOpen = sealed.withUnsafeBufferPointer { sealed in
        EVP_DecryptUpdate(context, buffer.baseAddress, &count, sealed.baseAddress, Int32(sealed.count)) == 1
          && EVP_DecryptFinal_ex(context, buffer.baseAddress! + Int(count), &rest) == 1
      }
      total = isOpen ? Int(count + rest) : 0
    }
    guard isOpen else { throw .decryptionFailed }
    return plain
  }

  private typealias Initialize = (
    OpaquePointer?, OpaquePointer?, OpaquePointer?, UnsafePointer<UInt8>?, UnsafePointer<UInt8>?
  ) -> Int32

  private func initialize(_ function: Initialize, _ nonce: UnsafePointer<UInt8>?) -> Bool {
    key.withBytes { function(context, method, nil, $0.baseAddress, nonce) == 1 }
  }

  private typealias Update = (
    OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?, UnsafePointer<UInt8>?, Int32
  ) -> Int32
  private typealias Final = (OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?) -> Int32

  private func associate(_ bytes: [UInt8], _ update: Update) throws(PacketError) {
    guard cipher != .aes128CBC else { return }
    var ignored: Int32 = 0
    guard update(context, nil, &ignored, bytes, Int32(bytes.count)) == 1 else { throw .internal }
  }

  /// Runs `input` through the cipher straight into the tail of `result`.
  private func append(
    _ input: UnsafeRawBufferPointer, capacity: Int, to result: inout [UInt8], update: Update, final: Final
  ) throws(PacketError) {
    guard let inputCount = Int32(exactly: input.count) else { throw .tooLarge }
    let start = result.count
    result.append(contentsOf: repeatElement(0, count: capacity))
    var count: Int32 = 0
    var rest: Int32 = 0
    let ok = result.withUnsafeMutableBufferPointer { buffer in
      let target = buffer.baseAddress! + start
      return update(context, target, &count, input.bindMemory(to: UInt8.self).baseAddress, inputCount) == 1
        && final(context, target + Int(count), &rest) == 1
    }
    guard ok else { throw .internal }
    result.removeLast(capacity - Int(count + rest))
  }
}
