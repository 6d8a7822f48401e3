import PrismBase
import PrismProtocol
import PrismTestSupport

@testable import PrismPacket

/// An answer as it is sent, and what its reader makes of it.
struct DownRig {
  static let key32 = Secret((0..<32).map { UInt8($0) })
  static func key(_ cipher: Cipher) -> Secret { Secret(Array(key32.bytes.prefix(cipher.keyBytes))) }

  static func question(_ cipher: Cipher, seed: UInt64 = 1) -> DownQuestion {
    var random = SeededRandom(seed: seed)
    return DownQuestion(
      deviceID: "c0ffee", namespace: .prism, table: RecordTableName("price")!, after: 17,
      packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random), cipher: cipher, keyID: "main")
  }

  let headers: DownHeaders
  let mac: String?
  let body: [UInt8]

  init(
    _ lines: [String], _ cipher: Cipher, _ encoding: PacketEncoding, count: Int? = nil, pieceBytes: Int = 1000
  ) throws {
    let packer = try DownPacker(encoding: encoding)
    var packed: [UInt8] = []
    for line in lines { packed += try packer.add(Array(line.utf8)) }
    packed += try packer.finish()
    headers = DownHeaders(
      to: Self.question(cipher), lineCount: count ?? lines.count, sentTime: 1_700_000_000_123, encoding: encoding)
    (body, mac) = try Self.seal(headers, packed, pieceBytes: pieceBytes)
  }

  /// The whole body, read in pieces.
  static func seal(
    _ headers: DownHeaders, _ packed: [UInt8], pieceBytes: Int = 1000
  ) throws -> (body: [UInt8], mac: String?) {
    let written = try DownBody(headers, packed: packed, key: key(headers.format.cipher))
    var (body, piece): ([UInt8], [UInt8]) = ([], .init(repeating: 0, count: pieceBytes))
    while true {
      let read = try piece.withUnsafeMutableBytes { try written.read(into: $0) }
      if read == 0 { break }
      body += piece[..<read]
    }
    precondition(body.count == written.byteCount)
    return (body, written.mac)
  }

  func read(
    _ headers: DownHeaders? = nil, body: [UInt8]? = nil, mac: String? = nil, bytesMax: Int = 1 << 30
  ) throws -> [String] {
    let cipher = (headers ?? self.headers).format.cipher
    let reader = DownReader(key: Self.key(cipher), unpackedBytesMax: bytesMax)
    let lines = try reader.open(headers ?? self.headers, body: body ?? self.body, mac: mac ?? self.mac)
    var result: [String] = []
    while let line = try lines.next() { result.append(String(decoding: line, as: UTF8.self)) }
    return result
  }
}
