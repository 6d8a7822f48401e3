/// Turns the plaintext of a packet's block into the block's bytes, and back (docs/packet.md, "A block").
///
/// Opening has two halves, so that what it costs to unpack is known before it is spent. Not for two threads at once.
protocol BlockCodec {
  /// - Parameter associated: authenticated with the block, and not part of it: which packet, which place.
  func seal(_ plain: [UInt8], associated: [UInt8]) throws(PacketError) -> [UInt8]
  /// - Returns: what the block holds, still packed.
  /// - Throws: `decryptionFailed`.
  func decrypt(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8]
  /// The size that `unpack` will return: nothing is unpacked.
  /// - Throws: `unpackFailed`.
  func unpackedBytes(_ packed: [UInt8]) throws(PacketError) -> Int
  /// - Throws: `unpackFailed` for anything that does not become as large as it says.
  func unpack(_ packed: [UInt8]) throws(PacketError) -> [UInt8]
}
