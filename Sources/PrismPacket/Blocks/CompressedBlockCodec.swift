import PrismProtocol

/// Compression, then encryption: the codec of what is sent.
final class CompressedBlockCodec: BlockCodec {
  private let cipher: BlockCipher
  private let compressor: any BlockCompressor

  /// - Throws: `keyLength` if the key is not as long as the cipher needs it.
  init(_ cipher: Cipher, key: Secret, compressor: any BlockCompressor) throws(PacketError) {
    self.cipher = try BlockCipher(cipher, key: key)
    self.compressor = compressor
  }

  func pack(_ plain: [UInt8]) throws(PacketError) -> [UInt8] { try compressor.pack(plain) }

  func encrypt(_ packed: [UInt8], associated: [UInt8]) throws(PacketError) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(packed.count + cipher.overheadBytesMax + 16)
    let nonce = try Hashing.randomBytes(cipher.nonceBytes)
    let failure: PacketError? = packed.withUnsafeBytes { packed in
      do throws(PacketError) {
        try cipher.seal(packed, associated: associated, nonce: nonce, to: &result)
        return nil
      } catch { return error }
    }
    if let failure { throw failure }
    return result
  }

  func blockBytes(packedBytes: Int) -> Int { cipher.blockBytes(plainBytes: packedBytes) }

  func decrypt(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8] {
    try cipher.open(block, associated: associated)
  }

  func unpackedBytes(_ packed: [UInt8]) throws(PacketError) -> Int { try compressor.unpackedBytes(packed) }
  func unpack(_ packed: [UInt8]) throws(PacketError) -> [UInt8] { try compressor.unpack(packed) }
}
