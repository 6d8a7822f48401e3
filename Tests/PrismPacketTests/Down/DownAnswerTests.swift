import Glibc
import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

@Suite("The answer with a table's changes") struct DownAnswerTests {
  static let lines = [#"{"full":true,"seq":9,"count":2}"#, #"{"id":"a","fields":{},"time":1}"#, #"{"id":"größe"}"#]

  @Test("is read again line by line, in every cipher and encoding", arguments: Cipher.allCases, PacketEncoding.allCases)
  func roundTrips(cipher: Cipher, encoding: PacketEncoding) throws {
    for pieceBytes in [1, 15, 1000] {
      let answer = try DownRig(Self.lines, cipher, encoding, pieceBytes: pieceBytes)
      #expect(try answer.read() == Self.lines)
      #expect((answer.mac != nil) == (cipher == .aes128CBC))
    }
    #expect(try DownRig(Self.lines, cipher, encoding).body != DownRig(Self.lines, cipher, encoding).body)
  }

  @Test("of many pieces is read again", arguments: Cipher.allCases, PacketEncoding.allCases)
  func manyPieces(cipher: Cipher, encoding: PacketEncoding) throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("long answers"))
    // Lines of all lengths, so that they end at every place of a piece; half of them do not shrink.
    let lines = (0..<300).map { number in
      let length = number == 0 ? DownLine.bytesMax : Int.random(in: 1...4000, using: &random)
      let text = (1..<length).map { _ in
        number.isMultiple(of: 2) ? UInt8.random(in: 35...126, using: &random) : UInt8(ascii: "x")
      }
      return "{" + String(decoding: text, as: UTF8.self)
    }
    let answer = try DownRig(lines, cipher, encoding)
    #expect(try answer.read() == lines)
  }

  @Test("is refused when any bit of its body changes", arguments: Cipher.allCases, PacketEncoding.allCases)
  func bodyIsBound(cipher: Cipher, encoding: PacketEncoding) throws {
    let answer = try DownRig(Self.lines, cipher, encoding)
    for bit in 0..<(answer.body.count * 8) {
      var body = answer.body
      body[bit / 8] ^= 1 << (bit % 8)
      #expect(throws: cipher == .aes128CBC ? PacketError.macMismatch : .decryptionFailed) {
        try DownReader(key: DownRig.key(cipher), unpackedBytesMax: 1000).open(
          answer.headers, body: body, mac: answer.mac)
      }
    }
    for count in 0..<answer.body.count {
      #expect(throws: PacketError.self) { try answer.read(body: Array(answer.body.prefix(count))) }
    }
  }

  @Test("is refused for another question, device, table, count or time", arguments: Cipher.allCases)
  func contextIsBound(cipher: Cipher) throws {
    let answer = try DownRig(Self.lines, cipher, .gzip)
    let changes: [(inout DownHeaders) -> Void] = [
      { $0.packetID = DownRig.question(cipher, seed: 2).packetID }, { $0.deviceID = "c0ffed" },
      { $0.namespace = NamespaceName("shop")! }, { $0.table = RecordTableName("pricf")! }, { $0.lineCount += 1 },
      { $0.sentTime += 1 },
    ]
    for change in changes {
      var headers = answer.headers
      change(&headers)
      #expect(throws: cipher == .aes128CBC ? PacketError.macMismatch : .decryptionFailed) {
        try DownReader(key: DownRig.key(cipher), unpackedBytesMax: 1000).open(
          headers, body: answer.body, mac: answer.mac)
      }
    }
  }

  @Test("is not taken for a packet of records, nor a packet for an answer") func kindIsBound() throws {
    let answer = try DownRig(Self.lines, .aes128GCM, .gzip)
    let packet = PacketHeaders(
      deviceID: answer.headers.deviceID, namespace: .prism, packetID: answer.headers.packetID, kind: .records,
      itemCount: answer.headers.lineCount, sentTime: answer.headers.sentTime, format: answer.headers.format)
    #expect(throws: PacketError.decryptionFailed) {
      try PacketReader(cipher: .aes128GCM, key: DownRig.key(.aes128GCM)).read(packet, body: answer.body, mac: nil)
    }
    let written = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: DownRig.key(.aes128GCM)).write(
      packet, metas: Array(Self.lines.joined(separator: "\n").utf8), payloads: [])
    #expect(throws: PacketError.decryptionFailed) { try answer.read(body: written.body) }
  }

  @Test("is refused with another encoding than it has", arguments: PacketEncoding.allCases, PacketEncoding.allCases)
  func encodingIsSeen(sent: PacketEncoding, said: PacketEncoding) throws {
    guard sent != said else { return }
    let answer = try DownRig(Self.lines, .aes256GCM, sent)
    var headers = answer.headers
    headers.format.encoding = said
    #expect(throws: PacketError.self) { try answer.read(headers) }
  }

  @Test("is refused with more or fewer lines than its headers say", arguments: PacketEncoding.allCases)
  func count(encoding: PacketEncoding) throws {
    for count in [1, 2, 4, 100] {
      let answer = try DownRig(Self.lines, .aes128GCM, encoding, count: count)
      #expect(throws: PacketError.countMismatch) { try answer.read() }
    }
  }

  @Test("a bomb is refused when the limit is passed, a long line at once", arguments: PacketEncoding.allCases)
  func bombs(encoding: PacketEncoding) throws {
    let line = "{" + String(repeating: "x", count: 9999)
    let answer = try DownRig(Array(repeating: line, count: 200), .aes128GCM, encoding)
    #expect(throws: PacketError.tooLarge) { try answer.read(bytesMax: 1_000_000) }
    #expect(try answer.read(bytesMax: 10_001 * 200).count == 200)
    let packer = try encoding.piecePacker()
    let packed = try packer.pack(Array(String(repeating: "{", count: DownLine.bytesMax + 1).utf8), isLast: true)
    let (body, _) = try DownRig.seal(answer.headers, packed)
    #expect(throws: PacketError.tooLarge) { try answer.read(body: body) }
    #expect(throws: PacketError.self) { try DownPacker(encoding: encoding).add([UInt8](repeating: 0, count: 16_385)) }
  }

  @Test(
    "of nothing, cut content or content with something behind it is refused", arguments: [PacketEncoding.gzip, .zstd])
  func cut(encoding: PacketEncoding) throws {
    let whole = try encoding.piecePacker().pack(Array("{}".utf8), isLast: true)
    let headers = DownHeaders(to: DownRig.question(.aes128GCM), lineCount: 1, sentTime: 0, encoding: encoding)
    for packed in [[], Array(whole.dropLast()), whole + [0], whole + whole] {
      let (body, _) = try DownRig.seal(headers, packed)
      let lines = try DownReader(key: DownRig.key(.aes128GCM), unpackedBytesMax: 100).open(
        headers, body: body, mac: nil)
      #expect(throws: PacketError.unpackFailed) { while try lines.next() != nil {} }
    }
  }

  @Test("its headers and those of its question read back; any other value is refused", arguments: Cipher.allCases)
  func headers(cipher: Cipher) throws {
    let question = DownRig.question(cipher)
    let asked = Dictionary(uniqueKeysWithValues: question.fields.map { ($0.name.lowercased(), $0.value) })
    let query = ["namespace": "prism", "table": "price", "after": "17"]
    #expect(question.target == "/prism/records?namespace=prism&table=price&after=17")
    #expect(try DownQuestion(query: { query[$0] }, { asked[$0].map { [$0] } ?? [] }) == question)
    for (name, wrong) in [("after", "-1"), ("after", "01"), ("table", "a/b"), ("namespace", "")] {
      #expect(throws: PacketHeaderFault(name: name, isMissing: false)) {
        try DownQuestion(query: { $0 == name ? wrong : query[$0] }, { asked[$0].map { [$0] } ?? [] })
      }
    }
    var last = question
    last.lastPacket = question.packetID
    #expect(last.target == question.target + "&last=\(question.packetID)")
    let lastQuery = query.merging(["last": question.packetID.description]) { $1 }
    #expect(try DownQuestion(query: { lastQuery[$0] }, { asked[$0].map { [$0] } ?? [] }) == last)
    var whole = DownHeaders(to: question, lineCount: 3, sentTime: 5, encoding: .zstd)
    let context = whole.context
    whole.isChainBroken = true
    #expect(whole.context != context, "it is authenticated")
    for (name, given, isBroken) in [("prism-chain", [String](), false), ("", [], true)] {
      let values = { (asked: String) in
        asked == name ? given : whole.fields.filter { $0.name.lowercased() == asked }.map(\.value)
      }
      #expect(try DownHeaders(answering: question, values).isChainBroken == isBroken)
    }
    let headers = DownHeaders(to: question, lineCount: 3, sentTime: 5, encoding: .zstd)
    for (name, value) in headers.fields {
      for given in [[value], [], [value + "x"], [value, value]] {
        let values: (String) -> [String] = { asked in
          asked == name.lowercased() ? given : headers.fields.filter { $0.name.lowercased() == asked }.map(\.value)
        }
        if given == [value] {
          #expect(try DownHeaders(answering: question, values) == headers)
        } else {
          #expect(throws: PacketHeaderFault(name: name.lowercased(), isMissing: given.isEmpty)) {
            try DownHeaders(answering: question, values)
          }
        }
      }
    }
  }

  @Test("a body that lies in a file is read in pieces; a file that becomes shorter is seen") func file() throws {
    let folder = TemporaryFolder()
    let answer = try DownRig(Self.lines, .aes128CBC, .none)
    try SmallFile.replace(folder("body"), with: answer.body)
    let file = try PieceFile(taking: open(folder("body"), O_RDONLY | O_CLOEXEC), of: folder("body"))
    let reader = DownReader(key: DownRig.key(.aes128CBC), unpackedBytesMax: 1000)
    let lines = try reader.open(answer.headers, body: file, mac: answer.mac)
    #expect(try lines.next() == Array(Self.lines[0].utf8))
    #expect(truncate(folder("body"), 20) == 0)
    #expect(throws: PacketError.internal) { try reader.open(answer.headers, body: file, mac: answer.mac) }
    #expect(throws: FileError.self) { try PieceFile(taking: -1, of: "nothing") }
  }
}
