/// Turns the plaintext of a packet's block into the block's bytes, and back (docs/packet.md, "A block").
///
/// Both ways have two halves. A packet is packed ahead of its turn and encrypted when it leaves; what it costs to unpack is
/// known before it is spent. Not for two threads at once.
protocol BlockCodec {
  func pack(_ plain: [UInt8]) throws(PacketError) -> [UInt8]
  /// - Parameter associated: authenticated with the block, and not part of it: which packet, which place.
  func encrypt(_ packed: [UInt8], associated: [UInt8]) throws(PacketError) -> [UInt8]
  /// The size of what `encrypt` makes of this many packed bytes.
  func blockBytes(packedBytes: Int) -> Int
  /// - Returns: what the block holds, still packed.
  /// - Throws: `decryptionFailed`.
  func decrypt(_ block: ArraySlice<UInt8>, associated: [UInt8]) throws(PacketError) -> [UInt8]
  /// The size that `unpack` will return: nothing is unpacked.
  /// - Throws: `unpackFailed`.
  func unpackedBytes(_ packed: [UInt8]) throws(PacketError) -> Int
  /// - Throws: `unpackFailed` for anything that does not become as large as it says.
  func unpack(_ packed: [UInt8]) throws(PacketError) -> [UInt8]
}
