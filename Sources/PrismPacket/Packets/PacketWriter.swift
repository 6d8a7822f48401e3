import PrismBase
public import PrismProtocol

/// Builds packets of version 2 (docs/packet.md). Keep one for each key: it holds compressors and a cipher.
///
/// Not for two threads at once.
public final class PacketWriter {
  private let preferred: PacketEncoding
  private let compressor: any BlockCompressor
  private let form: PacketForm
  private let compressed: CompressedBlockCodec
  private let stored: CompressedBlockCodec
  private let code: PacketCode?
  private let format: BlockFormat
  private let compressesAll: Bool

  /// - Parameter encoding: `zstd` only for a receiver that announces it; `none` is used by itself where nothing shrinks.
  /// - Parameter compression: how hard gzip tries.
  /// - Parameter compressesAll: `none` is never used by itself.
  /// - Parameter dictionary: with `zstd`, one that the receiver has.
  /// - Parameter form: `columns` only for a receiver that announces them: for packets of metas with 50 rows or more.
  /// - Throws: `keyLength` if the key is not as long as the cipher needs it.
  public init(
    cipher: Cipher, keyID: String, key: Secret, encoding: PacketEncoding = .gzip, compression: Compression = .small,
    compressesAll: Bool = false, dictionary: CompressionDictionary? = nil, form: PacketForm = .rows
  ) throws(PacketError) {
    let dictionary = encoding == .zstd ? dictionary : nil
    compressor =
      switch encoding {
      case .gzip: try GzipCompressor(compression)
      case .zstd: try ZstdCompressor(dictionary: dictionary)
      case .none: StoredCompressor()
      }
    compressed = try CompressedBlockCodec(cipher, key: key, compressor: compressor)
    stored = try CompressedBlockCodec(cipher, key: key)
    code = cipher == .aes128CBC ? try PacketCode(key: key) : nil
    (preferred, self.compressesAll, self.form) = (encoding, compressesAll, form)
    format = BlockFormat(cipher: cipher, keyID: keyID, encoding: encoding, dictionaryID: dictionary?.id)
  }

  /// Compresses a packet's rows, which costs most of the time; `seal` makes a packet of them, as often as it is sent.
  /// - Parameter metas: the lines of the meta block, joined with a line feed.
  /// - Parameter payloads: one for each row, in the order of the metas; nil for a kind without payloads.
  /// - Parameter kind: only metas become columns.
  /// - Throws: `frameOverflow` if the meta block or the count of payloads is more than the frame can say.
  public func pack(
    metas: [UInt8], payloads: [[UInt8]]?, of kind: RowKind = .meta
  ) throws(PacketError) -> PackedContents {
    if kind == .meta, form == .columns, let contents = try packColumns(metas) { return contents }
    let format = try format(for: metas, payloads ?? [])
    let codec = codec(format)
    let metaBlock = try codec.compressor.pack(metas)
    var (blocks, rawBytes): ([[UInt8]], Int) = ([], metas.count)
    for payload in payloads ?? [] {
      blocks.append(try codec.compressor.pack(payload))
      rawBytes += payload.count
    }
    let metaBytes = codec.blockBytes(packedBytes: metaBlock.count)
    var bodyBytes = metaBytes
    if payloads != nil {
      guard metaBytes <= Limits.packetMetaBlockBytesMax, blocks.count <= Limits.packetPayloadCountMax else {
        throw .frameOverflow
      }
      bodyBytes += blocks.reduce(3) { $0 + 4 + codec.blockBytes(packedBytes: $1.count) }
    }
    return PackedContents(
      format: format, rawBytes: rawBytes, bodyBytes: bodyBytes, metaBlock: metaBlock,
      payloadBlocks: payloads == nil ? nil : blocks)
  }

  /// Encrypts `contents` for one attempt.
  /// - Parameter headers: of this attempt; their `format` becomes that of `contents`.
  public func seal(_ headers: PacketHeaders, _ contents: PackedContents) throws(PacketError) -> WrittenPacket {
    var headers = headers
    headers.format = contents.format
    let body = try body(headers, contents)
    let mac = try code?.code(context: headers.context, body: body)
    return WrittenPacket(headers: headers, body: body, mac: mac.map { Hex.encode($0) }, rawBytes: contents.rawBytes)
  }

  /// Both halves in one go.
  public func write(
    _ headers: PacketHeaders, metas: [UInt8], payloads: [[UInt8]]
  ) throws(PacketError) -> WrittenPacket {
    try seal(headers, pack(metas: metas, payloads: headers.kind.hasPayload ? payloads : nil, of: headers.kind))
  }

  /// - Returns: nil where rows are sent.
  private func packColumns(_ metas: [UInt8]) throws(PacketError) -> PackedContents? {
    guard let (head, bytes, cuts) = ColumnPacker.pack(metas) else { return nil }
    let block = head.bytes + (try compressor.pack(bytes, cuts: cuts))
    var format = format
    format.form = .columns
    return PackedContents(
      format: format, rawBytes: metas.count, bodyBytes: compressed.blockBytes(packedBytes: block.count),
      metaBlock: block, payloadBlocks: nil)
  }

  private func codec(_ format: BlockFormat) -> CompressedBlockCodec {
    format.encoding == preferred ? compressed : stored
  }

  private func format(for metas: [UInt8], _ payloads: [[UInt8]]) throws(PacketError) -> BlockFormat {
    // Metas always shrink; uncompressed they must fit the frame.
    let couldStay = stored.blockBytes(packedBytes: metas.count) <= Limits.packetMetaBlockBytesMax
    guard preferred != .none, !compressesAll, !payloads.isEmpty, couldStay,
      !(try ShrinkProbe.shrinks(payloads, pack: compressor.pack))
    else { return format }
    return BlockFormat(cipher: format.cipher, keyID: format.keyID, encoding: .none)
  }

  private func body(_ headers: PacketHeaders, _ contents: PackedContents) throws(PacketError) -> [UInt8] {
    let codec = codec(contents.format)
    let context = headers.context
    let metaBlock = try codec.encrypt(contents.metaBlock, associated: context + "0".utf8)
    guard let payloadBlocks = contents.payloadBlocks else { return metaBlock }
    var blocks: [[UInt8]] = []
    for (index, packed) in payloadBlocks.enumerated() {
      blocks.append(try codec.encrypt(packed, associated: context + String(index + 1).utf8))
    }
    return try PayloadFrame.bytes(metaBlock: metaBlock, payloadBlocks: blocks)
  }
}

/// The rows of a packet, compressed and not yet encrypted.
public struct PackedContents: Sendable, Equatable {
  /// Cipher, key and compression that were used.
  public let format: BlockFormat
  /// Bytes before compression.
  public let rawBytes: Int
  /// Bytes of the body that is made of them.
  public let bodyBytes: Int
  let metaBlock: [UInt8]
  /// nil for a kind without payloads.
  let payloadBlocks: [[UInt8]]?

  /// Blocks that each attempt encrypts.
  public var blockCount: Int { 1 + (payloadBlocks?.count ?? 0) }
}

/// A packet as it is POSTed.
public struct WrittenPacket: Sendable, Equatable {
  /// The headers to send.
  public let headers: PacketHeaders
  /// The body to send.
  public let body: [UInt8]
  /// The value of `Prism-Mac`; nil if the cipher authenticates by itself.
  public let mac: String?
  /// Bytes before compression.
  public let rawBytes: Int
}
