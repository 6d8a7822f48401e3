public import PrismProtocol

/// Opens packets of version 2, trusting nothing in them. Every refusal has its reason (`PacketError`).
///
/// Keep one for each key; not for two threads at once.
public final class PacketReader {
  private let cipher: Cipher
  private let codecs: [PacketEncoding: CompressedBlockCodec]
  private let dictionaryID: UInt32?
  private let code: PacketCode?
  private let limits: PacketLimits
  private let commons: CommonCache

  /// - Parameter dictionary: the one that packets with `Prism-Dictionary` are opened with.
  /// - Parameter commons: of all readers of one queue.
  /// - Throws: `keyLength` if the key is not as long as the cipher needs it.
  public init(
    cipher: Cipher, key: Secret, dictionary: CompressionDictionary? = nil, limits: PacketLimits = PacketLimits(),
    commons: CommonCache = CommonCache()
  ) throws(PacketError) {
    (self.cipher, self.limits, self.commons, dictionaryID) = (cipher, limits, commons, dictionary?.id)
    code = cipher == .aes128CBC ? try PacketCode(key: key) : nil
    codecs = [
      .gzip: try CompressedBlockCodec(cipher, key: key, compressor: try GzipCompressor(.fast)),
      .zstd: try CompressedBlockCodec(cipher, key: key, compressor: try ZstdCompressor(dictionary: dictionary)),
      .none: try CompressedBlockCodec(cipher, key: key),
    ]
  }

  /// Decrypts and unpacks.
  /// - Parameter mac: the POST's `Prism-Mac`.
  /// - Throws: `tooLarge` over the limits, before anything is unpacked; `unpackFailed` for another dictionary than this
  ///   reader has, too.
  public func read(_ headers: PacketHeaders, body: [UInt8], mac: String?) throws(PacketError) -> ReadPacket {
    try unpack(try decrypt(headers, body: body, mac: mac))
  }

  /// The first half of `read`: costs time and memory in proportion to the body, for any content.
  public func decrypt(_ headers: PacketHeaders, body: [UInt8], mac: String?) throws(PacketError) -> PackedPacket {
    let codec = try codec(for: headers.format)
    let context = headers.context
    try code?.check(mac, context: context, body: body)
    let frame = headers.kind.hasPayload ? try PayloadFrame(parsing: body) : nil
    var metaBlock = try codec.decrypt(frame?.metaBlock ?? body[...], associated: context + "0".utf8)
    var columns: ColumnHead?
    if headers.format.form == .columns {
      columns = try ColumnHead(parsing: metaBlock)
      metaBlock.removeFirst(ColumnHead.byteCount)
    }
    let unpackedMetaBytes = try codec.compressor.unpackedBytes(metaBlock)
    var (payloadBlocks, payloadBytes, largest): ([[UInt8]], Int, Int) = ([], 0, 0)
    for (index, block) in (frame?.payloadBlocks ?? []).enumerated() {
      let packed = try codec.decrypt(block, associated: context + String(index + 1).utf8)
      let unpacked = try codec.compressor.unpackedBytes(packed)
      let (sum, overflows) = payloadBytes.addingReportingOverflow(unpacked)
      guard !overflows else { throw .tooLarge }
      (payloadBytes, largest) = (sum, max(largest, unpacked))
      payloadBlocks.append(packed)
    }
    return PackedPacket(
      headers: headers, metaBytes: columns?.textBytes ?? unpackedMetaBytes, columns: columns,
      columnBytes: columns == nil ? 0 : unpackedMetaBytes, payloadBytes: payloadBytes, largestPayloadBytes: largest,
      metaBlock: metaBlock, payloadBlocks: payloadBlocks)
  }

  /// The second half: costs what `metaBytes` and `payloadBytes` say.
  public func unpack(_ packet: PackedPacket) throws(PacketError) -> ReadPacket {
    let compressor = try codec(for: packet.headers.format).compressor
    guard packet.metaBytes <= limits.metaBlockBytesMax, packet.payloadBytes <= limits.payloadBytesMax else {
      throw .tooLarge
    }
    let text = try text(of: packet, compressor)
    // A block that is said to be compressed and is not, or the other way round, does not begin with an object.
    guard text.first == UInt8(ascii: "{") else { throw .unpackFailed }
    let metas = try MetaBlock(parsing: text, rowsMax: limits.rowsMax, cache: commons)
    let hasPayloads = packet.headers.kind.hasPayload
    guard metas.rows.count == packet.headers.itemCount,
      !hasPayloads || packet.payloadBlocks.count == metas.rows.count
    else { throw .countMismatch }
    var payloads: [[UInt8]] = []
    for block in packet.payloadBlocks { payloads.append(try compressor.unpack(block)) }
    return ReadPacket(metas: metas, payloads: payloads)
  }

  private func codec(for format: BlockFormat) throws(PacketError) -> CompressedBlockCodec {
    guard format.cipher == cipher, let codec = codecs[format.encoding] else { throw .decryptionFailed }
    guard format.dictionaryID == (format.encoding == .zstd ? dictionaryID : nil) else { throw .unpackFailed }
    return codec
  }

  /// The lines of the meta block.
  private func text(of packet: PackedPacket, _ compressor: any BlockCompressor) throws(PacketError) -> [UInt8] {
    guard let head = packet.columns else { return try compressor.unpack(packet.metaBlock) }
    try head.check(rows: packet.headers.itemCount, limits)
    guard packet.columnBytes <= limits.metaBlockBytesMax else { throw .tooLarge }
    return try ColumnBlock.text(try compressor.unpack(packet.metaBlock), head)
  }
}

/// A packet whose blocks are decrypted and still packed: what it costs to unpack is known, and not spent yet.
public struct PackedPacket: Sendable {
  /// The headers that were authenticated.
  public let headers: PacketHeaders
  /// The unpacked sizes of the blocks; a block with another size is refused. `metaBytes` is that of the lines.
  public let metaBytes: Int
  /// The announced size of columns; nil for rows.
  let columns: ColumnHead?
  /// The unpacked size of columns; 0 for rows.
  let columnBytes: Int
  public let payloadBytes: Int
  /// Of one payload.
  public let largestPayloadBytes: Int
  let metaBlock: [UInt8], payloadBlocks: [[UInt8]]

  /// Bytes that it holds.
  public var packedBytes: Int { payloadBlocks.reduce(metaBlock.count) { $0 + $1.count } }
  /// Bytes that are needed only while columns are turned into lines.
  public var workBytes: Int { columns.map { columnBytes + $0.workBytes } ?? 0 }
  /// The number of payload blocks.
  public var payloadCount: Int { payloadBlocks.count }
}

/// The content of a packet.
public struct ReadPacket: Sendable, Equatable {
  /// The meta block with its rows.
  public let metas: MetaBlock
  /// One for each row of the kind `payload`; empty for `meta`.
  public let payloads: [[UInt8]]

  public init(metas: MetaBlock, payloads: [[UInt8]]) { (self.metas, self.payloads) = (metas, payloads) }
}
