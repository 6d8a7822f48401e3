import PrismBase
import PrismProtocol

@testable import PrismPacket

#if FUZZ
  import FuzzSupport
#endif

/// Packets as the collector reads them.
///
/// The first byte says how. Bits 0 and 1: the rest is the body, one packed block, the lines of a sound packet, or a body
/// with a valid code. Bits 2 and 3: the encoding. Bits 4 and 5: the count of rows. Bit 6: the kind. Bit 7: the cipher.
#if FUZZ
  @main
#endif
enum PacketHarness: FuzzHarness {
  private static let key = Secret([UInt8](repeating: 7, count: 16))
  private static let id = PacketID("018bcfe5-6800-7000-8000-0000000000ff")!
  private static let limits = PacketLimits(metaBlockBytesMax: 1 << 20, payloadBytesMax: 1 << 20)
  private static let ciphers: [Cipher] = [.aes128GCM, .aes128CBC]
  private static let encodings: [PacketEncoding] = [.gzip, .zstd, .none, .gzip]

  private nonisolated(unsafe) static let readers = ciphers.map {
    try? PacketReader(cipher: $0, key: key, limits: limits)
  }
  private nonisolated(unsafe) static let writers = ciphers.map { cipher in
    encodings.map { try? PacketWriter(cipher: cipher, keyID: "main", key: key, encoding: $0) }
  }

  static func run(_ input: ArraySlice<UInt8>) {
    var rest = input
    let mode = rest.takeByte()
    let (cipher, encoding) = (Int(mode >> 7), Int(mode >> 2 & 3))
    let headers = PacketHeaders(
      deviceID: "d", namespace: .prism, packetID: id, kind: mode & 0x40 == 0 ? .meta : .payload,
      itemCount: 1 + Int(mode >> 4 & 3), sentTime: 1,
      format: BlockFormat(cipher: ciphers[cipher], keyID: "main", encoding: encodings[encoding]))
    guard let reader = readers[cipher], let writer = writers[cipher][encoding] else {
      fatalError("there is no reader, or no writer")
    }
    do {
      switch mode & 3 {
      case 0: try read(headers, Array(rest), mac: nil, reader)
      case 1: try read(try writer.seal(headers, contents([Array(rest)], headers)), reader)
      case 2: try read(try writer.seal(headers, contents(try packed(rest, writer), headers)), reader)
      default:
        let mac = Hex.encode(try PacketCode(key: key).code(context: headers.context, body: Array(rest)))
        try read(headers, Array(rest), mac: mac, reader)
      }
    } catch { return }
  }

  private static func read(_ packet: WrittenPacket, _ reader: PacketReader) throws {
    try read(packet.headers, packet.body, mac: packet.mac, reader)
  }

  private static func read(_ headers: PacketHeaders, _ body: [UInt8], mac: String?, _ reader: PacketReader) throws {
    let packet = try reader.read(headers, body: body, mac: mac)
    precondition(packet.metas.rows.count == headers.itemCount)
    precondition(packet.payloads.count == (headers.kind.hasPayload ? headers.itemCount : 0))
    for meta in try packet.metas.merged() where (try? MetaFields(meta.span)) != nil {
      let tree = try? JSONValue(parsing: meta, allowsDuplicateKeys: true)
      precondition(tree?.object != nil, "the collector takes a meta that is no JSON object")
    }
  }

  /// Packed blocks as a packet's contents: the first one is the meta block.
  private static func contents(_ packed: [[UInt8]], _ headers: PacketHeaders) -> PackedContents {
    PackedContents(
      format: headers.format, rawBytes: 0, bodyBytes: 0, metaBlock: packed[0],
      payloadBlocks: headers.kind.hasPayload ? Array(packed.dropFirst()) : nil)
  }

  /// The input's pieces between zero bytes, compressed: 1 or more.
  private static func packed(_ input: ArraySlice<UInt8>, _ writer: PacketWriter) throws -> [[UInt8]] {
    try input.split(separator: 0, maxSplits: 20, omittingEmptySubsequences: false).map { piece in
      try writer.pack(metas: Array(piece), payloads: nil).metaBlock
    }
  }
}
