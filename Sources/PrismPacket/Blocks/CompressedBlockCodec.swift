import PrismProtocol

/// Turns the plaintext of a packet's block into the block's bytes, and back: compression, then encryption (docs/packet.md,
/// "A block").
///
/// Both ways have two halves. A packet is packed ahead of its turn and encrypted when it leaves; what it costs to unpack is
/// known before it is spent. Not for two threads at once.
struct CompressedBlockCodec {
  /// Packs, and unpacks what `decrypt` returns.
  let compressor: any BlockCompressor
  private let cipher: BlockCipher

  /// - Throws: `keyLength` if the key is not as long as the cipher needs it.
  init(_ cipher: Cipher, key: Secret, compressor: any BlockCompressor) throws(PacketError) {
    self.cipher = try BlockCipher(cipher, key: key)
    self.compressor = compressor
  }

  /// - Parameter associated: authenticated with the block, and not part of it: which packet, which place.
  func encrypt(_ packed: [UInt8], associated: [UInt8]) throws(PacketError) -> [UInt8] {
    try cipher.seal(packed, associated: associated, nonce: try Hashing.randomBytes(cipher.nonceBytes))
  }

  /// The size of what `encrypt` makes of this many packed bytes.
  func blockBytes(packedBytes: Int) -> Int { cipher.blockBytes(plainBytes: packedBytes) }

  /// - Returns: what the block holds, still packed.
  /// - Throws: `decryptionFailed`.
  func decrypt(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8] {
    try cipher.open(block, associated: associated)
  }
}
