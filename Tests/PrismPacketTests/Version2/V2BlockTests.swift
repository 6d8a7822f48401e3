import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

@Suite("Version 2: common lines, zstd, sealed payloads")
struct V2BlockTests {
  @Test("common information is written when it changes, and only then") func writesCommonLines() throws {
    var writer = CommonLineWriter()
    for (row, common) in [("1", ""), ("2", "a"), ("3", "a"), ("4", "b"), ("5", "")] {
      writer.append(Array(#"{"n":\#(row)}"#.utf8), common: common.isEmpty ? [] : Array(#""\#(common)":1"#.utf8))
    }
    let lines = [
      #"{"n":1}"#, #"{"$common":{"a":1}}"#, #"{"n":2}"#, #"{"n":3}"#, #"{"$common":{"b":1}}"#, #"{"n":4}"#,
      #"{"$common":{}}"#, #"{"n":5}"#,
    ]
    #expect(String(decoding: writer.bytes, as: UTF8.self) == lines.joined(separator: "\n") && writer.rowCount == 5)
    let merged = try MetaBlock(parsing: writer.bytes, rowsMax: 5).merged().map { String(decoding: $0, as: UTF8.self) }
    #expect(merged == [#"{"n":1}"#, #"{"n":2,"a":1}"#, #"{"n":3,"a":1}"#, #"{"n":4,"b":1}"#, #"{"n":5}"#])
    #expect(throws: PacketError.countMismatch) { try MetaBlock(parsing: writer.bytes, rowsMax: 4) }
  }

  @Test(
    "a row keeps its own members, and what is no object stays as it is",
    arguments: [
      (#"{"a":1}"#, #"{"a":1,"b":{"c":[2]}}"#), ("{}", #"{"a":"x","b":{"c":[2]}}"#),
      (#"{"b":0,"a":0}"#, #"{"b":0,"a":0}"#),
      (#"{"\u0061":0}"#, #"{"\u0061":0,"b":{"c":[2]}}"#), ("", ""), ("7", "7"), ("{", "{"),
    ]) func merges(row: String, expected: String) throws
  {
    let text = Array(#"{"$common":{"a":"x","b":{"c":[2]}}}"#.utf8) + Array("\n\(row)".utf8)
    let merged = try MetaBlock(parsing: text, rowsMax: 1).merged()
    #expect(merged.map { String(decoding: $0, as: UTF8.self) } == [expected])
  }

  @Test("a merged row is not longer than a meta may be") func mergedLength() throws {
    let half = String(repeating: "x", count: 6000)
    let text = Array(#"{"$common":{"a":"\#(half)"}}"#.utf8) + Array("\n{\"b\":\"\(half)\"}".utf8)
    let block = try MetaBlock(parsing: text, rowsMax: 1)
    #expect(throws: PacketError.tooLarge) { try block.merged() }
  }

  @Test("any bytes are read or refused, and never trap") func hostileMetas() {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("hostile common lines"))
    let seeds = [#"{"$common":{"a":{"b":[1]}}}"# + "\n" + #"{"c":1}"#, #"{"$common":{}}"#, #"{"$common":{"a":1}}x}}"#]
    for _ in 0..<3000 {
      var bytes = Array(random.pick(seeds).utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        if random.oneIn(2) { bytes.remove(at: place) } else { bytes[place] = UInt8.random(in: 9...126, using: &random) }
      }
      guard let block = try? MetaBlock(parsing: bytes, rowsMax: 9), let rows = try? block.merged() else { continue }
      #expect(rows.count == block.rows.count)
    }
  }

  @Test("zstd unpacks what it packed, and takes one whole frame only") func zstd() throws {
    let compressor = try ZstdCompressor()
    for count in [0, 1, 1000, 300_000] {
      let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0 / 7) }
      let packed = try compressor.pack(plain)
      #expect(try compressor.unpackedBytes(packed) == count)
      #expect(try compressor.unpack(packed) == plain)
      for bad in [Array(packed.dropLast()), packed + [0], packed + packed, Array(packed.dropFirst())] {
        #expect(throws: PacketError.unpackFailed) { try compressor.unpack(bad) }
      }
    }
  }

  @Test("a dictionary saves bytes, and its packets open with it alone") func dictionary() throws {
    let samples = (0..<3000).map { n in
      Array(#"{"MONITOR_TYPE":"net","REPORT_ID":"\#(n)","host":"api\#(n % 7).example","status":\#(200 + n % 5)}"#.utf8)
    }
    let trained = try #require(CompressionDictionary.trained(from: samples, bytesMax: 4096))
    #expect(trained.id != 0 && CompressionDictionary(trained.bytes) == trained)
    #expect(CompressionDictionary([1, 2, 3]) == nil && CompressionDictionary.trained(from: []) == nil)
    let (with, without) = (try ZstdCompressor(dictionary: trained), try ZstdCompressor())
    let (packed, larger) = (try with.pack(samples[0]), try without.pack(samples[0]))
    #expect(packed.count < larger.count)
    #expect(try with.unpack(packed) == samples[0])
    #expect(throws: PacketError.unpackFailed) { try without.unpack(packed) }
  }

  @Test("a sealed payload opens with the private key alone, unchanged alone") func sealed() throws {
    var random = SeededRandom(seed: 7)
    let key = try SealingPrivateKey()
    #expect(SealingPrivateKey(pem: Array(key.pem.utf8))?.publicKey == key.publicKey)
    #expect(SealingPublicKey(base64: key.publicKey.base64) == key.publicKey)
    let report = SealedReport(deviceID: "d", namespace: .prism, reportID: "r")
    for count in [0, 5, 30_000] {
      let payload = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      let sealed = try SealedPayload.seal(payload, to: key.publicKey, of: report)
      #expect(try SealedPayload.open(sealed, with: key, of: report, bytesMax: count) == payload)
      #expect(try SealedPayload.seal(payload, to: key.publicKey, of: report) != sealed)
      #expect(sealed.count < count + SealedPayload.overheadBytes + 64)
      let other = try SealingPrivateKey()
      #expect(throws: PacketError.decryptionFailed) {
        try SealedPayload.open(sealed, with: other, of: report, bytesMax: count)
      }
      for bit in 0..<(min(sealed.count, 120) * 8) {
        var changed = sealed
        changed[bit / 8] ^= 1 << (bit % 8)
        // The last bit of an X25519 key is ignored by the exchange (RFC 7748), and not by the derivation of the key.
        #expect(throws: PacketError.self) { try SealedPayload.open(changed, with: key, of: report, bytesMax: count) }
      }
    }
    #expect(throws: PacketError.shortHeader) { try SealedPayload.open([1], with: key, of: report, bytesMax: 9) }
  }

  @Test("a public key of small order is refused") func smallOrder() throws {
    let zero = try #require(SealingPublicKey([UInt8](repeating: 0, count: 32)))
    #expect(throws: PacketError.decryptionFailed) {
      try SealedPayload.seal([1], to: zero, of: SealedReport(deviceID: "d", namespace: .prism, reportID: "r"))
    }
  }
}
