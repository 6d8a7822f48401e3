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

  func seal(_ plain: [UInt8], associated: [UInt8]) throws(PacketError) -> [UInt8] {
    let packed = try compressor.pack(plain)
    var result: [UInt8] = []
    result.reserveCapacity(packed.count + cipher.overheadBytesMax + 16)
    let nonce = try Hashing.randomBytes(cipher.nonceBytes)
    let sealed: PacketError? = packed.withUnsafeBytes { packed in
      do throws(PacketError) {
        try cipher.seal(packed, associated: associated, nonce: nonce, to: &result)
        return nil
      } catch { return error }
    }
    if let sealed { throw sealed }
    return result
  }

  func decrypt(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8] {
    try cipher.open(block, associated: associated)
  }

  func unpackedBytes(_ packed: [UInt8]) throws(PacketError) -> Int { try compressor.unpackedBytes(packed) }
  func unpack(_ packed: [UInt8]) throws(PacketError) -> [UInt8] { try compressor.unpack(packed) }

  /// The most bytes that a block has beyond what is packed in it.
  var overheadBytesMax: Int { cipher.overheadBytesMax }
}
