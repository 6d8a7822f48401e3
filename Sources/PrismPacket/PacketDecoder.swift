public import PrismProtocol

/// Takes a packet apart again, trusting nothing of it. Every refusal has its reason (`PacketError`).
///
/// Not for two threads at once.
public final class PacketDecoder {
  private let blocks: BlockCipher
  private let code: PacketCode?
  private let unpacker: GzipUnpacker
  private let limits: PacketLimits

  /// - Throws: `keyLength` when the key is not as long as the cipher wants it.
  public init(cipher: Cipher, key: Secret, limits: PacketLimits = PacketLimits()) throws(PacketError) {
    blocks = try BlockCipher(cipher, key: key)
    code = cipher == .aes128CBC ? try PacketCode(key: key) : nil
    unpacker = try GzipUnpacker()
    self.limits = limits
  }

  /// Decrypts and unpacks.
  /// - Parameter context: from the POST's headers; a body that was made for another one does not decrypt.
  /// - Parameter mac: the POST's `Prism-Mac`.
  /// - Throws: `tooLarge` over the limits, before anything is unpacked.
  public func decode(context: PacketContext, body: [UInt8], mac: String?) throws(PacketError) -> DecodedPacket {
    let packet = try decrypt(context: context, body: body, mac: mac)
    guard packet.metaBytes <= limits.metaBlockBytesMax, packet.payloadBytes <= limits.payloadBytesMax else {
      throw .tooLarge
    }
    let unpacked = try unpack(packet)
    let metas = unpacked.metas.split(separator: 0x0A, omittingEmptySubsequences: false).map(Array.init)
    guard !context.kind.hasPayload || metas.count == unpacked.payloads.count else { throw .countMismatch }
    return DecodedPacket(metas: metas, payloads: unpacked.payloads)
  }

  /// The first half of `decode`: costs time and memory in proportion to the body, whatever is packed in it. Its caller
  /// holds what comes of it to limits of its own before `unpack`.
  public func decrypt(context: PacketContext, body: [UInt8], mac: String?) throws(PacketError) -> DecryptedPacket {
    let contextBytes = context.bytes
    try code?.check(mac, context: contextBytes, body: body)
    guard context.kind.hasPayload else {
      return try DecryptedPacket(metaBlock: try open(body[...], index: 0, context: contextBytes), payloadBlocks: [])
    }
    let frame = try PayloadFrame(parsing: body)
    let metaBlock = try open(frame.metaBlock, index: 0, context: contextBytes)
    var payloadBlocks: [[UInt8]] = []
    for (index, block) in frame.payloadBlocks.enumerated() {
      payloadBlocks.append(try open(block, index: index + 1, context: contextBytes))
    }
    return try DecryptedPacket(metaBlock: metaBlock, payloadBlocks: payloadBlocks)
  }

  /// The second half of `decode`: costs what `metaBytes` and `payloadBytes` say. The metas are not counted.
  public func unpack(_ packet: DecryptedPacket) throws(PacketError) -> UnpackedPacket {
    let metas = try unpacker.unpack(packet.metaBlock)
    var payloads: [[UInt8]] = []
    for block in packet.payloadBlocks { payloads.append(try unpacker.unpack(block)) }
    return UnpackedPacket(metas: metas, payloads: payloads)
  }

  private func open(_ block: ArraySlice<UInt8>, index: Int, context: [UInt8]) throws(PacketError) -> [UInt8] {
    try blocks.open(block, associated: context + String(index).utf8)
  }
}

/// What a packet held, row by row.
public struct DecodedPacket: Sendable, Equatable {
  /// One a row.
  public let metas: [[UInt8]]
  /// One a row for the kind `payload`; none for `meta`.
  public let payloads: [[UInt8]]
}

/// What a packet may unpack to.
public struct PacketLimits: Sendable, Equatable {
  /// The meta block.
  public var metaBlockBytesMax: Int
  /// All payloads together.
  public var payloadBytesMax: Int
  /// Version 2 only: rows.
  public var rowsMax: Int

  /// The default takes all that a daemon sends within its ceilings (`limits.maxBodyMByte` is at most 64), but the meta
  /// block of a payload packet: at most 255 metas of 10,240 bytes.
  public init(metaBlockBytesMax: Int = 32 * 1_048_576, payloadBytesMax: Int = 65 * 1_048_576, rowsMax: Int = 10_000) {
    (self.metaBlockBytesMax, self.payloadBytesMax, self.rowsMax) = (metaBlockBytesMax, payloadBytesMax, rowsMax)
  }
}
