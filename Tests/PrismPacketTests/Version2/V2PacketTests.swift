import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

@Suite("Version 2: what prism writes")
struct V2PacketTests {
  static let key32 = Secret((0..<32).map { UInt8($0) })
  static func key(_ cipher: Cipher) -> Secret { Secret(Array(key32.bytes.prefix(cipher.keyBytes))) }

  static func headers(_ kind: RowKind, count: Int, _ random: inout some RandomNumberGenerator) -> PacketHeaders {
    PacketHeaders(
      deviceID: "c0ffee", namespace: .prism, packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      kind: kind, dependsOn: PacketID(unixMilliseconds: 1_600_000_000_000, using: &random), itemCount: count,
      ledger: "epoch=a;stored=3", pendingCount: 2, sentTime: 1_700_000_000_123,
      format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .gzip))
  }

  static let metas = Array(#"{"$common":{"A":"größe"}}"#.utf8) + Array("\n{\"n\":1}\n{\"n\":2,\"A\":3}".utf8)
  static let payloads: [[UInt8]] = [Array("hello hello hello".utf8), []]

  @Test("is read again, in every cipher and encoding", arguments: Cipher.allCases, PacketEncoding.allCases)
  func roundTrips(cipher: Cipher, encoding: PacketEncoding) throws {
    var random = SeededRandom(seed: 1)
    let writer = try PacketWriter(cipher: cipher, keyID: "main", key: Self.key(cipher), encoding: encoding)
    let reader = try PacketReader(cipher: cipher, key: Self.key(cipher))
    for kind in RowKind.reports {
      let payloads = kind == .payload ? Self.payloads : []
      let headers = Self.headers(kind, count: 2, &random)
      let packet = try writer.write(headers, metas: Self.metas, payloads: payloads)
      #expect(packet.headers.format == BlockFormat(cipher: cipher, keyID: "main", encoding: encoding))
      let contents = try writer.pack(metas: Self.metas, payloads: kind.hasPayload ? payloads : nil)
      #expect(packet.body.count == contents.bodyBytes)
      let read = try reader.read(packet.headers, body: packet.body, mac: packet.mac)
      #expect(read.payloads == payloads)
      let rows = try read.metas.merged().map { String(decoding: $0, as: UTF8.self) }
      #expect(rows == [#"{"n":1,"A":"größe"}"#, #"{"n":2,"A":3}"#])
      #expect(try writer.write(headers, metas: Self.metas, payloads: payloads).body != packet.body)
    }
  }

  /// A receiver: headers by name in lower case, and one key.
  private static func isTaken(_ packet: WrittenPacket, _ fields: [String: String], keyID: String) -> Bool {
    guard let headers = try? PacketHeaders(kind: packet.headers.kind, { name in fields[name].map { [$0] } ?? [] }),
      headers.format.keyID == keyID,
      let reader = try? PacketReader(cipher: headers.format.cipher, key: Self.key(headers.format.cipher))
    else { return false }
    return (try? reader.read(headers, body: packet.body, mac: fields["prism-mac"])) != nil
  }

  @Test("is refused when any bit of any header changes, or any header is missing", arguments: Cipher.allCases)
  func headersAreBound(cipher: Cipher) throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("changed headers"))
    for encoding in PacketEncoding.allCases {
      let writer = try PacketWriter(cipher: cipher, keyID: "main", key: Self.key(cipher), encoding: encoding)
      let packet = try writer.write(
        Self.headers(.payload, count: 2, &random), metas: Self.metas, payloads: Self.payloads)
      var fields: [String: String] = [:]
      for (name, value) in packet.headers.fields { fields[name.lowercased()] = value }
      fields["prism-mac"] = packet.mac
      try #require(Self.isTaken(packet, fields, keyID: "main"))
      for (name, value) in fields {
        var changed = fields
        changed[name] = nil
        #expect(!Self.isTaken(packet, changed, keyID: "main"), "without \(name)")
        for bit in 0..<(value.utf8.count * 8) {
          var bytes = Array(value.utf8)
          bytes[bit / 8] ^= 1 << (bit % 8)
          changed[name] = String(decoding: bytes, as: UTF8.self)
          #expect(!Self.isTaken(packet, changed, keyID: "main"), "\(encoding), \(name): \(changed[name] ?? "")")
        }
      }
    }
  }

  @Test("is refused when any bit of its body changes", arguments: Cipher.allCases, PacketEncoding.allCases)
  func bodyIsBound(cipher: Cipher, encoding: PacketEncoding) throws {
    var random = SeededRandom(seed: 2)
    let writer = try PacketWriter(cipher: cipher, keyID: "main", key: Self.key(cipher), encoding: encoding)
    let reader = try PacketReader(cipher: cipher, key: Self.key(cipher))
    let packet = try writer.write(Self.headers(.payload, count: 2, &random), metas: Self.metas, payloads: Self.payloads)
    for bit in 0..<(packet.body.count * 8) {
      var body = packet.body
      body[bit / 8] ^= 1 << (bit % 8)
      #expect(throws: PacketError.self) { try reader.read(packet.headers, body: body, mac: packet.mac) }
    }
  }

  @Test(
    "packets before it without a receipt are the last member of the ledger, in the form in which they are sent",
    arguments: [
      ("epoch=a;pending=2", ("epoch=a", 2)), ("pending=64", ("", 64)), ("epoch=a", ("epoch=a", 0)),
      ("epoch=a;pending=0", nil), ("epoch=a;pending=-1", nil), ("epoch=a;pending=x", nil), ("pending=02", nil),
      ("pending", nil), ("pending=", nil), ("pending=2;epoch=a", nil), ("pending=1;pending=2", nil),
    ] as [(String, (ledger: String, pendingCount: Int)?)])
  func pending(field: String, expected: (ledger: String, pendingCount: Int)?) throws {
    var random = SeededRandom(seed: 5)
    var fields: [String: String] = [:]
    for (name, value) in Self.headers(.meta, count: 1, &random).fields { fields[name.lowercased()] = value }
    fields["prism-ledger"] = field
    let read = { try PacketHeaders(kind: .meta) { name in fields[name].map { [$0] } ?? [] } }
    guard let expected else {
      #expect(throws: PacketHeaderFault(name: "prism-ledger", isMissing: false)) { try read() }
      return
    }
    let headers = try read()
    #expect((headers.ledger, headers.pendingCount) == expected)
    #expect(headers.fields.first { $0.name == "Prism-Ledger" }?.value == field)
  }

  @Test("a sender may leave out the time, which is an empty line of the context") func noSentTime() throws {
    var random = SeededRandom(seed: 6)
    var headers = Self.headers(.meta, count: 1, &random)
    headers.sentTime = nil
    let packet = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: Self.key(.aes128GCM)).write(
      headers, metas: Array("{}".utf8), payloads: [])
    #expect(String(decoding: packet.headers.context, as: UTF8.self).hasSuffix(";pending=2\n\n"))
    let read = try PacketHeaders(kind: .meta) { name in
      packet.headers.fields.filter { $0.name.lowercased() == name }.map(\.value)
    }
    #expect(read == packet.headers)
  }

  @Test("a header that is there twice is refused") func twice() throws {
    var random = SeededRandom(seed: 3)
    let headers = Self.headers(.meta, count: 1, &random)
    for twice in headers.fields.map(\.name) {
      #expect(throws: PacketHeaderFault(name: twice.lowercased(), isMissing: false)) {
        try PacketHeaders(kind: .meta) { name in
          let values = headers.fields.filter { $0.name.lowercased() == name }.map(\.value)
          return name == twice.lowercased() ? values + values : values
        }
      }
    }
  }

  @Test("payloads that do not shrink are sent as they are, in one packet with metas that would")
  func rawPayloads() throws {
    var random = SeededRandom(seed: 4)
    let noise = (0..<40_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let text = [UInt8](repeating: UInt8(ascii: "a"), count: 40_000)
    for encoding in [PacketEncoding.gzip, .zstd] {
      let writer = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: Self.key(.aes128GCM), encoding: encoding)
      let cases: [([[UInt8]], PacketEncoding)] = [
        ([noise], .none), ([text], encoding), ([noise, text], encoding), ([Array(noise.prefix(9))], encoding),
      ]
      for (payloads, expected) in cases {
        let metas = Array(payloads.map { _ in "{}" }.joined(separator: "\n").utf8)
        let headers = Self.headers(.payload, count: payloads.count, &random)
        let packet = try writer.write(headers, metas: metas, payloads: payloads)
        #expect(packet.headers.format.encoding == expected)
        let reader = try PacketReader(cipher: .aes128GCM, key: Self.key(.aes128GCM))
        #expect(try reader.read(packet.headers, body: packet.body, mac: nil).payloads == payloads)
      }
    }
  }

  @Test("what a packet unpacks to is known and limited before it is unpacked", arguments: PacketEncoding.allCases)
  func limits(encoding: PacketEncoding) throws {
    var random = SeededRandom(seed: 8)
    let payloads = [[UInt8]](repeating: [UInt8](repeating: 0, count: 3_000_000), count: 2)
    let writer = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: Self.key(.aes128GCM), encoding: encoding)
    let packet = try writer.write(Self.headers(.payload, count: 2, &random), metas: Self.metas, payloads: payloads)
    let limits = PacketLimits(payloadBytesMax: 5_999_999)
    let reader = try PacketReader(cipher: .aes128GCM, key: Self.key(.aes128GCM), limits: limits)
    let packed = try reader.decrypt(packet.headers, body: packet.body, mac: nil)
    #expect(packed.payloadBytes == 6_000_000 && packed.metaBytes == Self.metas.count)
    #expect(throws: PacketError.tooLarge) { try reader.unpack(packed) }
  }

  @Test("never overflows its frame: a meta block or a count that the frame can't hold is an error")
  func frameOverflow() throws {
    var random = SeededRandom(seed: 7)
    let noise = (0..<66_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let writer = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: Self.key(.aes128GCM))
    #expect(throws: PacketError.frameOverflow) { try writer.pack(metas: noise, payloads: [[]]) }
    #expect(throws: PacketError.frameOverflow) {
      try writer.pack(metas: Self.metas, payloads: [[UInt8]](repeating: [], count: 256))
    }
    #expect(throws: Never.self) { try writer.pack(metas: Array(noise.prefix(65_000)), payloads: [[]]) }
    #expect(throws: PacketError.frameOverflow) {
      try PayloadFrame.bytes(metaBlock: Array(noise.prefix(65_536)), payloadBlocks: [[]])
    }
    let full = try PayloadFrame.bytes(metaBlock: Array(noise.prefix(65_535)), payloadBlocks: [[1]])
    #expect(try PayloadFrame(parsing: full).metaBlock.count == 65_535)
  }

  @Test("a key of the wrong length is refused", arguments: Cipher.allCases)
  func keyLength(cipher: Cipher) {
    let key = Secret([1, 2, 3])
    #expect(throws: PacketError.keyLength) { try PacketWriter(cipher: cipher, keyID: "main", key: key) }
    #expect(throws: PacketError.keyLength) { try PacketReader(cipher: cipher, key: key) }
  }

  @Test("a packet is opened by no other device's key") func derivedKeys() throws {
    var random = SeededRandom(seed: 6)
    let keys = try ["a", "b"].map {
      try DeviceKey.derived(master: Self.key32, keyID: "main", deviceID: $0, cipher: .aes256GCM)
    }
    let writer = try PacketWriter(cipher: .aes256GCM, keyID: "main", key: keys[0])
    let packet = try writer.write(Self.headers(.meta, count: 2, &random), metas: Self.metas, payloads: [])
    let other = try PacketReader(cipher: .aes256GCM, key: keys[1])
    #expect(throws: PacketError.decryptionFailed) { try other.read(packet.headers, body: packet.body, mac: nil) }
  }
}
