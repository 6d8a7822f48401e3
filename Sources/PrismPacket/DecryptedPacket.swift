/// A packet whose blocks were decrypted and are still packed: what it costs to unpack is known, and not spent yet.
public struct DecryptedPacket: Sendable {
  let metaBlock: [UInt8]
  let payloadBlocks: [[UInt8]]
  /// The unpacked sizes of the blocks by their own trailers; a block with another size is refused.
  public let metaBytes: Int, payloadBytes: Int
  /// Of one payload.
  public let largestPayloadBytes: Int

  init(metaBlock: [UInt8], payloadBlocks: [[UInt8]]) throws(PacketError) {
    (self.metaBlock, self.payloadBlocks) = (metaBlock, payloadBlocks)
    metaBytes = try GzipUnpacker.unpackedBytes(metaBlock)
    var (bytes, largest) = (0, 0)
    for block in payloadBlocks {
      let unpacked = try GzipUnpacker.unpackedBytes(block)
      (bytes, largest) = (bytes + unpacked, max(largest, unpacked))
    }
    (payloadBytes, largestPayloadBytes) = (bytes, largest)
  }

  /// Bytes that it holds.
  public var packedBytes: Int { payloadBlocks.reduce(metaBlock.count) { $0 + $1.count } }
  /// The number of payload blocks.
  public var payloadCount: Int { payloadBlocks.count }
}

/// The content of a packet.
public struct UnpackedPacket: Sendable, Equatable {
  /// All metas, one a line, without a line feed at the end.
  public let metas: [UInt8]
  /// One for each row of the kind `payload`; empty for `meta`.
  public let payloads: [[UInt8]]

  public init(metas: [UInt8], payloads: [[UInt8]]) { (self.metas, self.payloads) = (metas, payloads) }
}
