public import PrismProtocol

/// Builds the body of a packet: gzip, AES, frame (docs/packet.md), big-endian throughout.
///
/// Holds a compressor and a cipher, so keep one a namespace; not for two threads at once.
public final class PacketEncoder {
  /// Bytes that the cipher and gzip can add to a meta block's plaintext at the most, where that doesn't compress at all:
  /// a plaintext shorter than the frame's limit by this always fits.
  public static let metaBlockOverheadBytesMax = 256

  private let cipher: Cipher
  private let blocks: BlockCipher
  private let code: PacketCode?
  private let gzip: GzipCompressor
  /// A seam for tests with fixed nonces; else random ones.
  var makeNonce: (Int) throws(PacketError) -> [UInt8] = { count throws(PacketError) in try Hashing.randomBytes(count) }

  /// - Throws: `keyLength` when the key is not as long as the cipher wants it.
  public init(cipher: Cipher, key: Secret, compression: Compression = .small) throws(PacketError) {
    self.cipher = cipher
    blocks = try BlockCipher(cipher, key: key)
    code = cipher == .aes128CBC ? try PacketCode(key: key) : nil
    gzip = try GzipCompressor(compression)
  }

  /// - Parameter metas: the rows' merged metas joined with a line feed.
  /// - Parameter payloads: one a row, in the order of the metas; none for the kind `meta`.
  /// - Throws: `frameOverflow` when the meta block or the count of payloads is over what the frame can say.
  public func encode(
    context: PacketContext, metas: [UInt8], payloads: [[UInt8]]
  ) throws(PacketError) -> EncodedPacket {
    let contextBytes = context.bytes
    let body =
      switch context.kind.layout {
      case .metas: try block(metas, index: 0, context: contextBytes)
      case .metasAndPayloads: try payloadBody(context: contextBytes, metas: metas, payloads: payloads)
      }
    let mac = try code?.code(context: contextBytes, body: body)
    return EncodedPacket(
      body: body, mac: mac.map { Hex.encode($0) }, rawBytes: payloads.reduce(metas.count) { $0 + $1.count })
  }

  private func payloadBody(
    context: [UInt8], metas: [UInt8], payloads: [[UInt8]]
  ) throws(PacketError) -> [UInt8] {
    let metaBlock = try block(metas, index: 0, context: context)
    var blocks: [[UInt8]] = []
    for (index, payload) in payloads.enumerated() {
      blocks.append(try block(payload, index: index + 1, context: context))
    }
    return try PayloadFrame.bytes(metaBlock: metaBlock, payloadBlocks: blocks)
  }

  /// `AES(gzip(plain))`; the index binds it to its place in the packet.
  private func block(_ plain: [UInt8], index: Int, context: [UInt8]) throws(PacketError) -> [UInt8] {
    try gzip.compress(plain) { (packed) throws(PacketError) in
      var result: [UInt8] = []
      result.reserveCapacity(packed.count + blocks.overheadBytesMax + 16)
      try blocks.seal(
        packed, associated: context + String(index).utf8, nonce: try makeNonce(blocks.nonceBytes), to: &result)
      return result
    }
  }
}

/// A packet's body, as it is POSTed.
public struct EncodedPacket: Sendable, Equatable {
  public let body: [UInt8]
  /// The value of `Prism-Mac`; nil where the cipher authenticates by itself.
  public let mac: String?
  /// Bytes before compression.
  public let rawBytes: Int
}
