import Foundation
import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs
@testable import PrismPacket

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

  /// A message with all of its events.
  struct Read {
    var message: ForwardMessage
    var events: [(event: ForwardEvents.Event, members: [UInt8])] = []
    var unusableCount = 0, isDamaged = false, isOverLimit = false
  }

  static func read(_ frame: [UInt8]) throws -> Read {
    var result = Read(message: try ForwardMessage(from: 0, of: frame.span))
    var events = ForwardEvents(result.message, frame)
    while let event = events.next() { result.events.append((event, events.members)) }
    (result.unusableCount, result.isDamaged) = (events.unusableCount, events.isDamaged)
    result.isOverLimit = events.isOverLimit
    return result
  }

  static func msgpack(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(msgpack: text)
    return bytes
  }

  static let packings: [PacketEncoding] = [.gzip, .zstd]

  private func packed(_ bytes: [UInt8], _ packing: PacketEncoding) throws -> [UInt8] {
    try packing == .gzip ? GzipCompressor().compress(bytes) : ZstdCompressor().pack(bytes, cuts: [])
  }

  @Test(
    "what Fluent Bit has beside the time is a member of the meta, unless it is empty",
    arguments: [
      ([0x81, 0xA1, 0x61, 0x92, 0x01, 0xC4, 0x01, 0xFF], #""FLUENT_METADATA":{"a":[1,"/w=="]},"m":1"#),
      ([0x80], #""m":1"#), ([0xC0], #""m":1"#),
    ] as [([UInt8], String)])
  func metadata(bytes: [UInt8], members: String) throws {
    let time: [UInt8] = [0x92, 0xCE, 0x67, 0x3E, 0x92, 0xE1]
    for head: [UInt8] in [[0x93, 0xA1, 0x74], [0x92, 0xA1, 0x74, 0x91, 0x92]] {
      let read = try Self.read(head + time + bytes + [0x81, 0xA1, 0x6D, 0x01])
      #expect(read.events.map { String(decoding: $0.members, as: UTF8.self) } == [members])
      #expect(read.events.first?.event.time == 1_732_154_081_000 && read.unusableCount == 0)
    }
  }

  @Test("the vectors are there") func vectorsAreThere() { #expect(Self.vectors.count == 13) }

  @Test("a frame gives its tag, chunk and events", arguments: vectors) func events(vector: Vector) throws {
    let read = try Self.read(vector.frame)
    #expect(read.message.tag == vector.json["tag"]?.string)
    #expect(read.message.chunk == vector.json["chunk"]?.string.map { Self.msgpack($0) })
    #expect(read.message.end == vector.frame.count)
    let expected = try #require(vector.json["events"]?.array)
    #expect(read.events.count == expected.count)
    for (found, expected) in zip(read.events, expected) {
      #expect(found.event.time == expected["time"]?.int.map(Int64.init))
      #expect(try JSONCheck.parse(found.members).sorted == expected["record"]?.sorted)
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
    let found = try #require(try Self.read(frame).events.first)
    #expect(found.event.payload == [1, 2])
    #expect(String(decoding: found.members, as: UTF8.self) == #""PAYLOAD_FIELD":"dump","more":"Aw==""#)
  }

  @Test(
    "msgpack's own time stamps are times of events, in each of their lengths",
    arguments: [
      ([0xD6, 0xFF, 0x67, 0x3E, 0x92, 0xE1], 1_732_154_081_000),
      ([0xD7, 0xFF, 0x1D, 0xCD, 0x65, 0x00, 0x67, 0x3E, 0x92, 0xE1], 1_732_154_081_125),
      ([0xC7, 0x0C, 0xFF, 0x1D, 0xCD, 0x65, 0x00, 0, 0, 0, 0, 0x67, 0x3E, 0x92, 0xE1], 1_732_154_081_500),
      ([0xD7, 0x00, 0x67, 0x3E, 0x92, 0xE1, 0x1D, 0xCD, 0x65, 0x00], 1_732_154_081_500),
      ([0xC7, 0x08, 0x00, 0x67, 0x3E, 0x92, 0xE1, 0xFF, 0xFF, 0xFF, 0xFF], 1_732_154_081_999),
      ([0xC7, 0x0C, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], nil),
      ([0xD6, 0x05, 0x67, 0x3E, 0x92, 0xE1], nil),
    ] as [([UInt8], Int64?)]) func times(time: [UInt8], milliseconds: Int64?) throws
  {
    let read = try Self.read([0x93] + Self.msgpack("t") + time + [0x81, 0xA1, 0x6E, 1])
    #expect(read.events.count == 1 && read.events.first?.event.time == milliseconds)
  }

  @Test("a chunk of any kind is sent back as it came, and a nil is no chunk")
  func chunks() throws {
    for chunk: [UInt8] in [[0xC4, 3, 1, 2, 0xFF], [0x05], [0xA1, 0xFF], [0xD9, 1, 0x61]] {
      for key in [Self.msgpack("chunk"), [0xC4, 5] + Array("chunk".utf8)] {
        let read = try Self.read([0x94] + Self.msgpack("t") + [1, 0x81, 0xA1, 0x6E, 1, 0x81] + key + chunk)
        #expect(read.message.chunk == chunk)
      }
    }
    let empty = try Self.read(
      [0x94] + Self.msgpack("t") + [1, 0x81, 0xA1, 0x6E, 1, 0x81] + Self.msgpack("chunk") + [0xC0])
    #expect(empty.message.chunk == nil && empty.events.count == 1)
  }

  @Test("of damaged entries those before the damage are read", arguments: packings)
  func damage(packing: PacketEncoding) throws {
    let entry: [UInt8] = [0x92, 0x01, 0x81, 0xA1, 0x61, 0x01]
    func packed(_ entries: [UInt8], _ option: [UInt8] = []) throws -> Read {
      try Self.read(
        [option.isEmpty ? 0x92 : 0x93, 0xA1, 0x74, 0xC5, UInt8(entries.count >> 8), UInt8(entries.count & 255)]
          + entries + option)
    }
    let option: [UInt8] = [0x81] + Self.msgpack("compressed") + Self.msgpack(packing.rawValue)
    let cut = try packed(entry + entry.dropLast())
    #expect(cut.events.count == 1 && cut.unusableCount == 1 && cut.isDamaged)
    let parts = [entry, Array(entry.prefix(3)), Array(entry.dropFirst(3))]
    let members = try parts.flatMap { try self.packed($0, packing) }
    let whole = try packed(members, option)
    #expect(whole.events.count == 2 && whole.unusableCount == 0 && !whole.isDamaged)
    let short = try packed(members.dropLast(3), option)
    // The end of a gzip member is its code, the end of a small zstd frame its content.
    #expect(short.events.count == (packing == .gzip ? 2 : 1) && short.unusableCount == 1 && short.isDamaged)
    for bad in [try packed([0xC1, 0x01]), try packed(entry, option)] {
      #expect(bad.events.isEmpty && bad.unusableCount == 1 && bad.isDamaged)
    }
    #expect(try packed([]).isDamaged == false)
  }

  @Test("packed entries are unpacked as they are read, a large event too", arguments: packings)
  func pieces(packing: PacketEncoding) throws {
    var entries: [UInt8] = []
    for number in 0..<20_000 {
      entries += [0x92, 0x01, 0x81, 0xA1, 0x6E, 0xCD, UInt8(number >> 8), UInt8(number & 255)]
    }
    let large: [UInt8] = [0x92, 0x01, 0x81, 0xA1, 0x6C, 0xDB, 0, 0x10, 0, 0] + [UInt8](repeating: 0x78, count: 1 << 20)
    let packed = try packed(entries + large + entries, packing)
    let head: [UInt8] =
      [0x93, 0xA1, 0x74, 0xC6] + (0..<4).map { UInt8(truncatingIfNeeded: packed.count >> (24 - 8 * $0)) }
    let read = try Self.read(head + packed + [0x81] + Self.msgpack("compressed") + Self.msgpack(packing.rawValue))
    #expect(read.events.count == 40_001 && read.unusableCount == 0)
    #expect(read.events[20_000].members.count == (1 << 20) + 6)
    #expect(String(decoding: read.events[40_000].members, as: UTF8.self) == #""n":19999"#)
  }

  @Test(
    "a value that is no message of the protocol is refused",
    arguments: [
      [0xC0], [0x90], [0x91, 0xA1, 0x74], [0x92, 0xA1, 0x74, 0xC0], [0x92, 0x01, 0x90], [0x93, 0xA1, 0x74, 0x01],
      [0xC1], [0x93, 0xA1, 0x74, 0xDD, 0xFF, 0xFF, 0xFF, 0xFF, 0x80],
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

  @Test("one event that unpacks to too much ends the message, and another compression is refused", arguments: packings)
  func bomb(packing: PacketEncoding) throws {
    let bytes = ForwardEvents.eventBytesMax * 2
    let event: [UInt8] =
      [0x92, 0x01, 0x81, 0xA1, 0x6C, 0xDB] + (0..<4).map { UInt8(truncatingIfNeeded: bytes >> (24 - 8 * $0)) }
    let packed = try packed(event + [UInt8](repeating: 0x78, count: bytes), packing)
    let head: [UInt8] =
      [0x93, 0xA1, 0x74, 0xC6] + (0..<4).map { UInt8(truncatingIfNeeded: packed.count >> (24 - 8 * $0)) }
    let read = try Self.read(head + packed + [0x81] + Self.msgpack("compressed") + Self.msgpack(packing.rawValue))
    #expect(read.events.isEmpty && read.isOverLimit)
    #expect(throws: ForwardMessage.Fault.compression) {
      try Self.read(head + packed + [0x81] + Self.msgpack("compressed") + Self.msgpack("lz4"))
    }
  }

  @Test("no random change of a frame traps", arguments: vectors) func randomChanges(vector: Vector) {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("ForwardVectorTests"))
    for _ in 0..<1_000 {
      var frame = vector.frame
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      guard let read = try? Self.read(frame) else { continue }
      for event in read.events { #expect(throws: Never.self) { try JSONCheck.parse(event.members) } }
    }
  }
}
