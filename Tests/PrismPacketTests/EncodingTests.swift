import Foundation
import PrismProtocol
import Testing

@testable import PrismPacket

@Suite("What prism encodes")
struct EncodingTests {
  static func context(_ kind: RowKind) -> PacketContext {
    var random = SystemRandomNumberGenerator()
    return PacketContext(
      deviceID: "c0ffee", namespace: .prism, packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      kind: kind)
  }

  static func key(_ cipher: Cipher) -> Secret { Secret((0..<cipher.keyBytes).map { UInt8($0) }) }

  @Test("is decoded again, and differs each time it is encoded", arguments: Cipher.allCases)
  func roundTrips(cipher: Cipher) throws {
    let encoder = try PacketEncoder(cipher: cipher, key: Self.key(cipher))
    let decoder = try PacketDecoder(cipher: cipher, key: Self.key(cipher))
    let metas: [[UInt8]] = (0..<3).map { Array(#"{"n":\#($0),"text":"größe"}"#.utf8) }
    let payloads: [[UInt8]] = [[], Array(0...255), [UInt8](repeating: 7, count: 1 << 20)]
    for kind in RowKind.all {
      let (context, sent) = (Self.context(kind), kind == .payload ? payloads : [])
      let joined = Array(metas.joined(separator: [0x0A]))
      let packet = try encoder.encode(context: context, metas: joined, payloads: sent)
      #expect(packet.rawBytes == joined.count + sent.reduce(0) { $0 + $1.count })
      let decoded = try decoder.decode(context: context, body: packet.body, mac: packet.mac)
      #expect(decoded == DecodedPacket(metas: metas, payloads: sent))
      #expect(try encoder.encode(context: context, metas: joined, payloads: sent).body != packet.body)
    }
  }

  @Test("is refused when any one of its bits is flipped", arguments: Cipher.allCases)
  func flippedBits(cipher: Cipher) throws {
    let encoder = try PacketEncoder(cipher: cipher, key: Self.key(cipher))
    let decoder = try PacketDecoder(cipher: cipher, key: Self.key(cipher))
    let context = Self.context(.payload)
    let packet = try encoder.encode(context: context, metas: Array(#"{"a":1}"#.utf8), payloads: [[1, 2, 3]])
    for bit in 0..<(packet.body.count * 8) {
      var body = packet.body
      body[bit / 8] ^= 1 << (bit % 8)
      #expect(throws: PacketError.self) { try decoder.decode(context: context, body: body, mac: packet.mac) }
    }
  }

  @Test("never overflows the frame: a meta block or a count that it can't say is an error")
  func frameOverflow() throws {
    let encoder = try PacketEncoder(cipher: .aes128GCM, key: Self.key(.aes128GCM))
    var random = SystemRandomNumberGenerator()
    let noise = (0..<66_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    #expect(throws: PacketError.frameOverflow) {
      try encoder.encode(context: Self.context(.payload), metas: noise, payloads: [[]])
    }
    #expect(throws: PacketError.frameOverflow) {
      try encoder.encode(
        context: Self.context(.payload), metas: [0x7B, 0x7D], payloads: [[UInt8]](repeating: [], count: 256))
    }
    let most = noise.prefix(65_535 - PacketEncoder.metaBlockOverheadBytesMax)
    #expect(throws: Never.self) {
      try encoder.encode(context: Self.context(.payload), metas: Array(most), payloads: [[]])
    }
  }

  @Test("a key of the wrong length is no key", arguments: Cipher.allCases)
  func keyLength(cipher: Cipher) {
    #expect(throws: PacketError.keyLength) { try PacketEncoder(cipher: cipher, key: Secret([1, 2, 3])) }
  }

  @Test("is decoded by Python's cryptography package, which shares no code with it", arguments: Cipher.allCases)
  func independently(cipher: Cipher) throws {
    let encoder = try PacketEncoder(cipher: cipher, key: Self.key(cipher))
    let metas = [#"{"n":1}"#, #"{"n":2,"t":"größe"}"#]
    let payloads: [[UInt8]] = [Array("hello".utf8), []]
    for kind in RowKind.all {
      let context = Self.context(kind)
      let packet = try encoder.encode(
        context: context, metas: Array(metas.joined(separator: "\n").utf8), payloads: kind == .payload ? payloads : [])
      let question: JSONValue = [
        "cipher": .string(cipher.rawValue), "key": .string(Hex.encode(Self.key(cipher).bytes)),
        "context": .string(Hex.encode(context.bytes)), "kind": .string(kind.name),
        "body": .string(Hex.encode(packet.body)), "mac": packet.mac.map { .string($0) } ?? .null,
      ]
      let answer = try JSONValue(parsing: try Self.python("decode_packet.py", question.bytes))
      #expect(answer["metas"]?.array?.compactMap(\.string) == metas)
      let expected = kind == .payload ? payloads.map { Hex.encode($0) } : []
      #expect(answer["payloads"]?.array?.compactMap(\.string) == expected)
    }
  }

  private static func python(_ script: String, _ input: [UInt8]) throws -> [UInt8] {
    let path = try #require(Bundle.module.path(forResource: script, ofType: nil, inDirectory: "Vectors"))
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
    process.arguments = [path]
    let (standardInput, standardOutput) = (Pipe(), Pipe())
    process.standardInput = standardInput
    process.standardOutput = standardOutput
    try process.run()
    standardInput.fileHandleForWriting.write(Data(input))
    try standardInput.fileHandleForWriting.close()
    let output = try standardOutput.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Array(output)
  }

  @Test("a device id tells nothing of the machine id and is always the same")
  func deviceID() throws {
    let id = try DeviceID.derived(machineID: "0123456789abcdef0123456789abcdef")
    #expect(id.utf8.count == 32 && Hex.decode(id) != nil)
    #expect(try DeviceID.derived(machineID: "0123456789abcdef0123456789abcdef") == id)
    #expect(try DeviceID.derived(machineID: "1123456789abcdef0123456789abcdef") != id)
  }
}
