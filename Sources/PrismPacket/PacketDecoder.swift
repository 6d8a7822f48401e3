public import PrismProtocol

/// Takes a packet apart again, trusting nothing of it. Every refusal has its reason (`PacketError`).
///
/// Not for two threads at once.
public final class PacketDecoder {
  private let blocks: BlockCipher
  private let code: PacketCode?
  private let limits: PacketLimits

  /// - Throws: `keyLength` when the key is not as long as the cipher wants it.
  public init(cipher: Cipher, key: Secret, limits: PacketLimits = PacketLimits()) throws(PacketError) {
    blocks = try BlockCipher(cipher, key: key)
    code = cipher == .aes128CBC ? try PacketCode(key: key) : nil
    self.limits = limits
  }

  /// - Parameter context: from the POST's headers; a body that was made for another one does not decrypt.
  /// - Parameter mac: the POST's `Prism-Mac`.
  public func decode(context: PacketContext, body: [UInt8], mac: String?) throws(PacketError) -> DecodedPacket {
    let contextBytes = context.bytes
    try code?.check(mac, context: contextBytes, body: body)
    switch context.kind {
    case .meta:
      let metas = try open(body[...], index: 0, context: contextBytes, bytesMax: limits.metaBlockBytesMax)
      return DecodedPacket(metas: split(metas), payloads: [])
    case .payload: return try decodePayloads(body, context: contextBytes)
    }
  }

  private func decodePayloads(_ body: [UInt8], context: [UInt8]) throws(PacketError) -> DecodedPacket {
    let frame = try PayloadFrame(parsing: body)
    let metas = split(try open(frame.metaBlock, index: 0, context: context, bytesMax: limits.metaBlockBytesMax))
    guard metas.count == frame.payloadBlocks.count else { throw .countMismatch }
    var payloads: [[UInt8]] = []
    var rest = limits.payloadBytesMax
    for (index, block) in frame.payloadBlocks.enumerated() {
      let payload = try open(block, index: index + 1, context: context, bytesMax: rest)
      rest -= payload.count
      payloads.append(payload)
    }
    return DecodedPacket(metas: metas, payloads: payloads)
  }

  private func open(
    _ block: ArraySlice<UInt8>, index: Int, context: [UInt8], bytesMax: Int
  ) throws(PacketError) -> [UInt8] {
    let packed = try blocks.open(block, associated: context + String(index).utf8)
    return try gunzip(packed[...], bytesMax: bytesMax)
  }

  private func split(_ metas: [UInt8]) -> [[UInt8]] {
    metas.split(separator: 0x0A, omittingEmptySubsequences: false).map(Array.init)
  }
}

/// What a packet held.
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

  /// The default takes all that a daemon sends within its ceilings (`limits.maxBodyMByte` is at most 64), but the meta
  /// block of a payload packet: at most 255 metas of 10,240 bytes.
  public init(metaBlockBytesMax: Int = 32 * 1_048_576, payloadBytesMax: Int = 65 * 1_048_576) {
    self.metaBlockBytesMax = metaBlockBytesMax
    self.payloadBytesMax = payloadBytesMax
  }
}
