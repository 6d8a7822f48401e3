import FuzzSupport
import PrismProtocol

@testable import PrismPacket

/// Packets as the collector decodes them. The first byte says how deep the rest reaches: as the body, as a block before
/// decryption, as gzip, or as metas and payloads of a packet that is sound.
@main
enum Packet {
  static func main() { Fuzz.run { run($0) } }

  private static let key = Secret([UInt8](repeating: 7, count: 16))
  private static let id = PacketID("018bcfe5-6800-7000-8000-0000000000ff")!
  private static let nonce = [UInt8](repeating: 3, count: 12)
  private static let limits = PacketLimits(metaBlockBytesMax: 1 << 20, payloadBytesMax: 1 << 20)

  private nonisolated(unsafe) static let gcmDecoder = try? PacketDecoder(cipher: .aes128GCM, key: key, limits: limits)
  private nonisolated(unsafe) static let cbcDecoder = try? PacketDecoder(cipher: .aes128CBC, key: key, limits: limits)

  private static func run(_ input: ArraySlice<UInt8>) {
    var rest = input
    let mode = rest.takeByte()
    let cipher: Cipher = mode & 0x80 == 0 ? .aes128GCM : .aes128CBC
    let kind: RowKind = mode & 0x40 == 0 ? .meta : .payload
    let context = PacketContext(deviceID: "d", namespace: .prism, packetID: id, kind: kind)
    do {
      switch mode & 3 {
      case 0: try decode(Array(rest), context, cipher)
      case 1: try decode(body([Array(rest)], context), context, .aes128GCM)
      case 2: try decode(body(try blocks(rest), context), context, .aes128GCM)
      default: try decode(Array(rest), context, cipher, hasMac: true)
      }
    } catch { return }
  }

  private static func decode(
    _ body: [UInt8], _ context: PacketContext, _ cipher: Cipher, hasMac: Bool = false
  ) throws {
    guard let decoder = cipher == .aes128CBC ? cbcDecoder : gcmDecoder else { fatalError("there is no decoder") }
    let mac = hasMac ? Hex.encode(try PacketCode(key: key).code(context: context.bytes, body: body)) : nil
    let packet = try decoder.decode(context: context, body: body, mac: mac)
    precondition(packet.payloads.count == (context.kind == .payload ? packet.metas.count : 0))
    for meta in packet.metas where (try? MetaFields(meta.span)) != nil {
      let tree = try? JSONValue(parsing: meta, allowsDuplicateKeys: true)
      precondition(tree?.object != nil, "the collector takes a meta that is no JSON object")
    }
  }

  /// Blocks whose ciphertext is sound, and whose gzip is the input's.
  private static func body(_ packed: [[UInt8]], _ context: PacketContext) throws -> [UInt8] {
    let cipher = try BlockCipher(.aes128GCM, key: key)
    var sealed: [[UInt8]] = []
    for (index, bytes) in packed.enumerated() {
      var block: [UInt8] = []
      let context = context.bytes + String(index).utf8
      bytes.withUnsafeBytes { try? cipher.seal($0, associated: context, nonce: nonce, to: &block) }
      sealed.append(block)
    }
    guard context.kind == .payload, let first = sealed.first, first.count <= 0xFFFF else { return sealed.first ?? [] }
    var body = [UInt8(first.count >> 8), UInt8(first.count & 0xFF), UInt8(truncatingIfNeeded: sealed.count - 1)]
    for block in sealed.dropFirst() { body += (0..<4).map { UInt8(truncatingIfNeeded: block.count >> (24 - 8 * $0)) } }
    return body + sealed.joined()
  }

  /// The input's pieces between zero bytes, compressed.
  private static func blocks(_ input: ArraySlice<UInt8>) throws -> [[UInt8]] {
    let compressor = try GzipCompressor()
    var blocks: [[UInt8]] = []
    for piece in input.split(separator: 0, maxSplits: 20, omittingEmptySubsequences: false) {
      blocks.append(try compressor.compress(Array(piece)))
    }
    return blocks
  }
}
