import PrismProtocol

/// Encrypts and decrypts whole blocks of packets (docs/packet.md, "A block") under one key.
struct BlockCipher {
  private let cipher: Cipher
  private let key: Secret

  /// - Throws: `keyLength` when `key` is not as long as `cipher` wants it.
  init(_ cipher: Cipher, key: Secret) throws(PacketError) {
    guard key.count == cipher.keyBytes else { throw .keyLength }
    (self.cipher, self.key) = (cipher, key)
  }

  var nonceBytes: Int { CipherStream.nonceBytes(cipher) }

  /// The size of the block that `seal` makes of this many bytes.
  func blockBytes(plainBytes: Int) -> Int { CipherStream.blockBytes(cipher, plainBytes: plainBytes) }

  /// - Parameter associated: authenticated, not sent; of no use for CBC.
  /// - Returns: nonce, ciphertext and tag.
  func seal(_ plain: [UInt8], associated: [UInt8], nonce: [UInt8]) throws(PacketError) -> [UInt8] {
    let stream = try CipherStream(cipher, key: key, nonce: nonce, associated: associated, isSealing: true)
    var block = nonce
    block.reserveCapacity(blockBytes(plainBytes: plain.count))
    block += try stream.update(plain[...])
    block += try stream.finish()
    return block
  }

  /// - Throws: `decryptionFailed` for a block that is too short, was changed, or belongs elsewhere.
  func open(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8] {
    let tagBytes = CipherStream.tagBytes(cipher)
    guard block.count >= nonceBytes + tagBytes, Int32(exactly: block.count) != nil else { throw .decryptionFailed }
    let nonce = Array(block.prefix(nonceBytes))
    let stream = try CipherStream(cipher, key: key, nonce: nonce, associated: associated, isSealing: false)
    var plain = try stream.update(block.dropFirst(nonceBytes).dropLast(tagBytes))
    plain += try stream.finish(tag: Array(block.suffix(tagBytes)))
    return plain
  }
}
