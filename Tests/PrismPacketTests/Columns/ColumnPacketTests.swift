import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

@Suite("Columns in packets")
struct ColumnPacketTests {
  private static let lines = [#"{"$common":{"APP_NAME":"größe"}}"#] + (0..<120).map { #"{"n":\#($0),"v":"a"}"# }
  private static let metas = ColumnTests.bytes(lines)

  private static func headers(_ count: Int = 120, _ kind: RowKind = .meta) -> PacketHeaders {
    var random = SeededRandom(seed: 1)
    return V2PacketTests.headers(kind, count: count, &random)
  }

  private static func writer(
    _ cipher: Cipher = .aes128GCM, _ encoding: PacketEncoding = .zstd, _ form: PacketForm = .columns,
    dictionary: CompressionDictionary? = nil
  ) throws -> PacketWriter {
    try PacketWriter(
      cipher: cipher, keyID: "main", key: V2PacketTests.key(cipher), encoding: encoding, dictionary: dictionary,
      form: form)
  }

  @Test(
    "a packet with columns is smaller, says so, and is read as rows", arguments: Cipher.allCases,
    PacketEncoding.allCases)
  func roundTrips(cipher: Cipher, encoding: PacketEncoding) throws {
    let reader = try PacketReader(cipher: cipher, key: V2PacketTests.key(cipher))
    let packets = try [PacketForm.rows, .columns].map { form in
      try Self.writer(cipher, encoding, form).write(Self.headers(), metas: Self.metas, payloads: [])
    }
    #expect(
      packets.map { packet in packet.headers.fields.first { $0.name == "Prism-Form" }?.value } == [nil, "columns"])
    #expect(packets[1].body.count < packets[0].body.count)
    for packet in packets {
      #expect(packet.rawBytes == Self.metas.count)
      let read = try reader.read(packet.headers, body: packet.body, mac: packet.mac)
      #expect(read.metas.text == Self.metas && read.metas.rows.count == 120)
    }
    let contents = try Self.writer(cipher, encoding).pack(metas: Self.metas, payloads: nil)
    #expect(contents.bodyBytes == packets[1].body.count)
  }

  @Test(
    "the form is bound to the packet: taken away, added or changed, the packet is refused", arguments: Cipher.allCases)
  func isBound(cipher: Cipher) throws {
    let reader = try PacketReader(cipher: cipher, key: V2PacketTests.key(cipher))
    for form in PacketForm.allCases {
      let packet = try Self.writer(cipher, .zstd, form).write(Self.headers(), metas: Self.metas, payloads: [])
      var headers = packet.headers
      headers.format.form = form == .rows ? .columns : .rows
      #expect(throws: cipher == .aes128CBC ? PacketError.macMismatch : .decryptionFailed) {
        try reader.read(headers, body: packet.body, mac: packet.mac)
      }
    }
  }

  @Test("only metas have the header, and rows are not named", arguments: ["rows", "columns", "Columns", ""])
  func header(value: String) {
    for kind in RowKind.all {
      var fields = [String: String]()
      for (name, value) in Self.headers(1, kind).fields { fields[name.lowercased()] = value }
      fields["prism-form"] = value
      let headers = try? PacketHeaders(kind: kind) { name in fields[name].map { [$0] } ?? [] }
      #expect((headers?.format.form == .columns) == (kind == .meta && value == "columns"))
      #expect(headers == nil || headers?.format.form == .columns)
    }
  }

  @Test("records, payloads and few rows stay rows")
  func rows() throws {
    let writer = try Self.writer()
    let few = ColumnTests.bytes((0..<49).map { #"{"n":\#($0)}"# })
    #expect(try writer.pack(metas: few, payloads: nil).format.form == .rows)
    #expect(try writer.pack(metas: Self.metas, payloads: nil, of: .records).format.form == .rows)
    let payloads = [[UInt8]](repeating: [1], count: 120)
    #expect(try writer.pack(metas: Self.metas, payloads: payloads, of: .payload).format.form == .rows)
  }

  @Test("a dictionary of rows makes columns smaller, and opens them")
  func dictionary() throws {
    let lines = (0..<3000).map { number in
      #"{"$common":{"APP_NAME":"shop","SYS_SYSTEM_VERSION":"Debian GNU/Linux 12 (bookworm)"}}"# + "\n"
        + #"{"sequence":\#(number),"host":"api\#(number % 7).example.org","message":"the request finished"}"#
    }
    let trained = try #require(CompressionDictionary.trained(from: lines.map { Array($0.utf8) }, bytesMax: 4096))
    let metas = ColumnTests.bytes(Array(lines[..<60]))
    let packet = try Self.writer(dictionary: trained).write(Self.headers(60), metas: metas, payloads: [])
    #expect(packet.headers.format.form == .columns && packet.headers.format.dictionaryID == trained.id)
    #expect(packet.body.count < (try Self.writer().write(Self.headers(60), metas: metas, payloads: []).body.count))
    let reader = try PacketReader(cipher: .aes128GCM, key: V2PacketTests.key(.aes128GCM), dictionary: trained)
    #expect(try reader.read(packet.headers, body: packet.body, mac: nil).metas.text == metas)
    let stranger = try PacketReader(cipher: .aes128GCM, key: V2PacketTests.key(.aes128GCM))
    #expect(throws: PacketError.unpackFailed) { try stranger.read(packet.headers, body: packet.body, mac: nil) }
  }
}
