public import PrismProtocol

/// Builds packets of version 2 (docs/packet.md). Keep one for each key: it holds compressors and a cipher.
///
/// Not for two threads at once.
public final class PacketWriter {
  private let preferred: PacketEncoding
  private let compressor: any BlockCompressor
  private let compressed: CompressedBlockCodec
  private let stored: CompressedBlockCodec
  private let code: PacketCode?
  private let format: BlockFormat

  /// - Parameter encoding: `zstd` only for a receiver that announces it; `none` is used by itself where nothing shrinks.
  /// - Parameter compression: how hard gzip tries.
  /// - Parameter dictionary: with `zstd`, one that the receiver has.
  /// - Throws: `keyLength` if the key is not as long as the cipher needs it.
  public init(
    cipher: Cipher, keyID: String, key: Secret, encoding: PacketEncoding = .gzip, compression: Compression = .small,
    dictionary: CompressionDictionary? = nil
  ) throws(PacketError) {
    let dictionary = encoding == .zstd ? dictionary : nil
    compressor =
      switch encoding {
      case .gzip: try GzipBlockCompressor(compression)
      case .zstd: try ZstdCompressor(dictionary: dictionary)
      case .none: StoredCompressor()
      }
    compressed = try CompressedBlockCodec(cipher, key: key, compressor: compressor)
    stored = try CompressedBlockCodec(cipher, key: key, compressor: StoredCompressor())
    code = cipher == .aes128CBC ? try PacketCode(key: key) : nil
    preferred = encoding
    format = BlockFormat(cipher: cipher, keyID: keyID, encoding: encoding, dictionaryID: dictionary?.id)
  }

  /// - Parameter headers: of this attempt; their `format` becomes what this writer used.
  /// - Parameter metas: the lines of the meta block, joined with a line feed.
  /// - Parameter payloads: one for each row, in the order of the metas; empty for the kind `meta`.
  /// - Throws: `frameOverflow` if the meta block or the count of payloads is more than the frame can say.
  public func write(
    _ headers: PacketHeaders, metas: [UInt8], payloads: [[UInt8]]
  ) throws(PacketError) -> WrittenPacket {
    var headers = headers
    headers.format = try format(for: metas, payloads)
    let codec = headers.format.encoding == preferred ? compressed : stored
    let body = try Self.body(headers, metas: metas, payloads: payloads, codec)
    let mac = try code?.code(context: headers.context, body: body)
    return WrittenPacket(
      headers: headers, body: body, mac: mac.map { Hex.encode($0) },
      rawBytes: payloads.reduce(metas.count) { $0 + $1.count })
  }

  private func format(for metas: [UInt8], _ payloads: [[UInt8]]) throws(PacketError) -> BlockFormat {
    // Metas always shrink; uncompressed they must fit the frame.
    let couldStay = metas.count + stored.overheadBytesMax <= Limits.packetMetaBlockBytesMax
    guard preferred != .none, !payloads.isEmpty, couldStay,
      !(try ShrinkProbe.shrinks(payloads, pack: compressor.pack))
    else { return format }
    return BlockFormat(cipher: format.cipher, keyID: format.keyID, encoding: .none)
  }

  /// The body of a packet by any codec.
  static func body(
    _ headers: PacketHeaders, metas: [UInt8], payloads: [[UInt8]], _ codec: some BlockCodec
  ) throws(PacketError) -> [UInt8] {
    let context = headers.context
    let metaBlock = try codec.seal(metas, associated: context + "0".utf8)
    guard headers.kind == .payload else { return metaBlock }
    var blocks: [[UInt8]] = []
    for (index, payload) in payloads.enumerated() {
      blocks.append(try codec.seal(payload, associated: context + String(index + 1).utf8))
    }
    return try PayloadFrame.bytes(metaBlock: metaBlock, payloadBlocks: blocks)
  }
}

/// A packet as it is POSTed.
public struct WrittenPacket: Sendable, Equatable {
  public let headers: PacketHeaders
  public let body: [UInt8]
  /// The value of `Prism-Mac`; nil if the cipher authenticates by itself.
  public let mac: String?
  /// Bytes before compression.
  public let rawBytes: Int
}
