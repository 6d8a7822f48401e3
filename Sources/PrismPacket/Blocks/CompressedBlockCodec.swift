import PrismProtocol

/// Turns the plaintext of a packet's block into the block's bytes, and back: compression, then encryption under one key
/// (docs/packet.md, "A block").
///
/// Both ways have two halves. A packet is packed ahead of its turn and encrypted when it leaves; what it costs to unpack is
/// known before it is spent. Not for two threads at once.
struct CompressedBlockCodec {
  /// Packs, and unpacks what `decrypt` returns.
  let compressor: any BlockCompressor
  private let cipher: Cipher
  private let key: Secret

  /// - Throws: `keyLength` if the key is not as long as the cipher needs it.
  init(_ cipher: Cipher, key: Secret, compressor: any BlockCompressor = StoredCompressor()) throws(PacketError) {
    guard key.count == cipher.keyBytes else { throw .keyLength }
    (self.cipher, self.key, self.compressor) = (cipher, key, compressor)
  }

  /// - Parameter associated: authenticated with the block, and not part of it: which packet, which place. Of no use for CBC.
  /// - Parameter nonce: nil: a random one.
  /// - Returns: nonce, ciphertext and tag.
  func encrypt(_ packed: [UInt8], associated: [UInt8], nonce: [UInt8]? = nil) throws(PacketError) -> [UInt8] {
    var block = if let nonce { nonce } else { try Hashing.randomBytes(CipherStream.nonceBytes(cipher)) }
    let stream = try CipherStream(cipher, key: key, nonce: block, associated: associated, isSealing: true)
    block.reserveCapacity(blockBytes(packedBytes: packed.count))
    block += try stream.update(packed[...])
    block += try stream.finish()
    return block
  }

  /// The size of what `encrypt` makes of this many packed bytes.
  func blockBytes(packedBytes: Int) -> Int { CipherStream.blockBytes(cipher, plainBytes: packedBytes) }

  /// - Returns: what the block holds, still packed.
  /// - Throws: `decryptionFailed` for a block that is too short, was changed, or belongs elsewhere.
  func decrypt(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8] {
    let (nonceBytes, tagBytes) = (CipherStream.nonceBytes(cipher), CipherStream.tagBytes(cipher))
    guard block.count >= nonceBytes + tagBytes, Int32(exactly: block.count) != nil else { throw .decryptionFailed }
    let nonce = Array(block.prefix(nonceBytes))
    let stream = try CipherStream(cipher, key: key, nonce: nonce, associated: associated, isSealing: false)
    var packed = try stream.update(block.dropFirst(nonceBytes).dropLast(tagBytes))
    packed += try stream.finish(tag: Array(block.suffix(tagBytes)))
    return packed
  }
}
