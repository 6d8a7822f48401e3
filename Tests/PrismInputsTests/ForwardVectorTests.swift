import Foundation
import PrismBase
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs

/// Vectors/forward.json holds frames that fluent-logger wrote, and those of other senders after their documentation
/// (make_forward.py).
@Suite struct ForwardVectorTests {
  struct Vector: CustomTestStringConvertible, Sendable {
    let frame: [UInt8]
    let json: JSONValue
    var testDescription: String { json["name"]?.string ?? "" }
  }

  static let vectors: [Vector] = {
    guard let url = Bundle.module.url(forResource: "forward", withExtension: "json", subdirectory: "Vectors"),
      let file = try? Data(contentsOf: url), let list = try? JSONValue(parsing: file).array
    else { return [] }
    return list.compactMap { one in
      one["frame"]?.string.flatMap { Base64.decode(Array($0.utf8)) }.map { Vector(frame: $0, json: one) }
    }
  }()

  static func read(_ frame: [UInt8]) throws -> ForwardMessage {
    try ForwardMessage(0..<frame.count, of: frame.span) { try? gunzip($0[...], bytesMax: $1, takesSeveral: true) }
  }

  @Test("the vectors are there") func vectorsAreThere() { #expect(Self.vectors.count == 13) }

  @Test("a frame gives its tag, chunk and events", arguments: vectors) func events(vector: Vector) throws {
    let message = try Self.read(vector.frame)
    #expect(message.tag == vector.json["tag"]?.string)
    #expect(message.chunk == vector.json["chunk"]?.string.map { Array($0.utf8) })
    let expected = try #require(vector.json["events"]?.array)
    #expect(message.events.count == expected.count)
    for (found, expected) in zip(message.events, expected) {
      #expect(found.time == expected["time"]?.int.map(Int64.init))
      #expect(try JSONCheck.parse(Array(message.text[found.members])).sorted == expected["record"]?.sorted)
    }
  }

  @Test("a frame that comes byte by byte ends where it ends", arguments: vectors) func framing(vector: Vector) throws {
    let stream = vector.frame + vector.frame
    var framer = MsgPackFramer(from: 0)
    var end: Int?
    for count in 1...stream.count where end == nil {
      guard count >= framer.neededBytes else { continue }
      if try framer.advance(stream.span.extracting(0..<count)) { end = framer.position }
    }
    #expect(end == vector.frame.count)
  }

  @Test("a binary field is the payload; others are base64") func binary() throws {
    // ["t", 1732154081, {"dump": bin 01 02, "more": bin 03}]
    let frame: [UInt8] =
      [0x93, 0xA1, 0x74, 0xCE, 0x67, 0x3E, 0x92, 0xE1, 0x82, 0xA4] + Array("dump".utf8) + [0xC4, 2, 1, 2, 0xA4]
      + Array("more".utf8) + [0xC4, 1, 3]
    let message = try Self.read(frame)
    let event = try #require(message.events.first)
    #expect(event.payload == [1, 2])
    #expect(String(decoding: message.text[event.members], as: UTF8.self) == #""PAYLOAD_FIELD":"dump","more":"Aw==""#)
  }

  @Test(
    "a value that is no message of the protocol is refused",
    arguments: [
      [0xC0], [0x90], [0x91, 0xA1, 0x74], [0x92, 0xA1, 0x74, 0xC0], [0x92, 0x01, 0x90], [0x93, 0xA1, 0x74, 0x01],
      [0xC1], [0x93, 0xA1, 0x74, 0xDD, 0xFF, 0xFF, 0xFF, 0xFF, 0x80],
      [0x92, 0xA1, 0x74, 0xC4, 0x02, 0x92, 0x01],
    ] as [[UInt8]]) func refused(frame: [UInt8])
  {
    #expect(throws: ForwardMessage.Fault.self) { try Self.read(frame) }
  }

  @Test("a claimed count costs no memory, levels cost no stack") func claims() {
    #expect(throws: ForwardMessage.Fault.self) { try Self.read([0x92, 0xA1, 0x74, 0xDD, 0x7F, 0xFF, 0xFF, 0xFF]) }
    var framer = MsgPackFramer(from: 0)
    let deep = [UInt8](repeating: 0x91, count: 5_000)
    #expect(throws: MsgPackReader.Fault.tooDeep) { try framer.advance(deep.span) }
  }

  @Test("a record of too many levels is left out, the others are taken") func deepRecord() throws {
    let deep = [UInt8](repeating: 0x91, count: 100) + [0xC0]
    let entry: [UInt8] = [0x92, 0x01, 0x81, 0xA1, 0x61]
    let message = try Self.read([0x92, 0xA1, 0x74, 0x93] + entry + [0x01] + entry + deep + entry + [0x02])
    #expect(message.events.count == 2)
    #expect(message.unusableCount == 1)
  }

  @Test("entries that unpack to too much are refused") func bomb() {
    let bomb = ForwardMessage.unpackedBytesMax + 1
    var asked = 0
    let frame: [UInt8] =
      [0x93, 0xA1, 0x74, 0xC4, 0x01, 0x00, 0x81, 0xAA] + Array("compressed".utf8) + [0xA4] + Array("gzip".utf8)
    #expect(throws: ForwardMessage.Fault.compression) {
      try ForwardMessage(0..<frame.count, of: frame.span) { _, bytesMax in
        asked = bytesMax
        return bomb > bytesMax ? nil : []
      }
    }
    #expect(asked == ForwardMessage.unpackedBytesMax)
  }

  @Test("no random change of a frame traps", arguments: vectors) func randomChanges(vector: Vector) {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("ForwardVectorTests"))
    for _ in 0..<1_000 {
      var frame = vector.frame
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      guard let message = try? Self.read(frame) else { continue }
      for event in message.events {
        #expect(throws: Never.self) { try JSONCheck.parse(Array(message.text[event.members])) }
      }
    }
  }
}
