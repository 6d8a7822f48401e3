import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Dictionaries of the collector")
struct DictionariesTests {
  private static let namespace = NamespaceName("shop")!
  private let rig = StoreRig()

  private func dictionaries() throws -> Dictionaries {
    Dictionaries(DictionaryStore(.folder(rig.path)), time: rig.time, log: rig.log)
  }

  private static func line(_ number: Int, _ secret: String = "") -> String {
    #"{"MONITOR_TYPE":"order","REPORT_ID":"\#(number &* 2_654_435_761)","screen":"/basket/\#(number % 9)","#
      + #""state":"the basket was changed","user":"\#(secret)"}"#
  }

  /// A packet of `count` rows of a device, as the collector unpacks it.
  private static func block(_ count: Int, from start: Int = 0, secret: String = "") throws -> MetaBlock {
    let lines = (start..<start + count).map { line($0, secret) }
    return try MetaBlock(parsing: Array(lines.joined(separator: "\n").utf8), rowsMax: count)
  }

  private static func delivery(_ device: String, _ namespace: NamespaceName = namespace) throws -> Delivery {
    var context = CollectorTests.context(.meta, device: device)
    context.namespace = namespace
    return try Delivery(try CollectorTests.request(context, metas: ["{}"]), kind: .meta, now: nil)
  }

  private static func offer(
    _ packets: Int, devices: Int, derived: Bool, secret: String = "", to dictionaries: Dictionaries
  ) throws {
    for packet in 0..<packets {
      let device = packet % devices
      dictionaries.offer(
        try block(100, from: packet * 100, secret: device == 0 ? secret : ""), from: try delivery("d\(device)").context,
        derivesKeys: derived)
    }
  }

  @Test("a dictionary is made once devices asked and enough packets came; it is kept over a restart")
  func life() async throws {
    let dictionaries = try dictionaries()
    try Self.offer(60, devices: 4, derived: true, to: dictionaries)
    await dictionaries.maintain()
    #expect(dictionaries.announced(of: Self.namespace) == nil, "no device asked")
    #expect(try await dictionaries.newest(of: Self.namespace) == nil)
    try Self.offer(10, devices: 4, derived: true, to: dictionaries)
    await dictionaries.maintain()
    #expect(try await dictionaries.newest(of: Self.namespace) == nil, "too few packets came")
    try Self.offer(60, devices: 4, derived: true, to: dictionaries)
    await dictionaries.maintain()
    let made = try #require(try await dictionaries.newest(of: Self.namespace))
    #expect(dictionaries.announced(of: Self.namespace) == made.id)
    let packet = Array((0..<10).map { Self.line($0 + 1_000_000) }.joined(separator: "\n").utf8)
    let (with, without) = try (
      CompressionDictionary.packedBytes(of: [packet], with: made),
      CompressionDictionary.packedBytes(of: [packet], with: nil)
    )
    #expect(with * 10 < without * 8, "\(with) of \(without) bytes")
    let later = try self.dictionaries()
    #expect(try await later.dictionary(made.id, of: Self.namespace) == made)
    #expect(try await later.dictionary(made.id, of: .prism) == nil, "it is of another namespace")
    #expect(try await later.newest(of: Self.namespace) == made)
  }

  @Test("a new one is made after a day at the soonest, and only if it makes packets smaller") func renewal()
    async throws
  {
    let dictionaries = try dictionaries()
    _ = try await dictionaries.newest(of: Self.namespace)
    try Self.offer(100, devices: 1, derived: false, to: dictionaries)
    await dictionaries.maintain()
    let first = try #require(dictionaries.announced(of: Self.namespace))
    try Self.offer(400, devices: 1, derived: false, to: dictionaries)
    await dictionaries.maintain()
    #expect(dictionaries.announced(of: Self.namespace) == first)
    rig.time.advance(by: .seconds(25 * 3600))
    await dictionaries.maintain()
    #expect(dictionaries.announced(of: Self.namespace) == first, "packets are as they were")
  }

  @Test(
    "a piece that one device alone sent is in no dictionary where each device has its own key",
    arguments: [(true, false), (false, true)])
  func secrets(derived: Bool, isThere: Bool) async throws {
    let dictionaries = try dictionaries()
    _ = try await dictionaries.newest(of: Self.namespace)
    try Self.offer(120, devices: 4, derived: derived, secret: "patient Miller of room 12", to: dictionaries)
    await dictionaries.maintain()
    let made = try #require(try await dictionaries.newest(of: Self.namespace))
    let text = String(decoding: made.bytes, as: UTF8.self)
    #expect(text.contains("patient Miller") == isThere)
    #expect(text.contains("the basket was changed"))
  }

  @Test("samples are bounded") func bounds() throws {
    var samples = DictionarySamples()
    for start in 0..<400 {
      samples.add(try Self.block(1000, from: start * 1000), from: "d", devicesMin: 1)
      #expect(samples.bytes <= DictionarySamples.bytesMax + Limits.metaBytesMax)
    }
    #expect(samples.isFull)
  }

  @Test("a namespace past the most that are looked after is refused") func namespaces() async throws {
    let dictionaries = try dictionaries()
    let names = (0..<Dictionaries.namespacesMax).map { NamespaceName("n\($0)")! }
    for name in names + [Self.namespace] {
      dictionaries.offer(try Self.block(1), from: try Self.delivery("d", name).context, derivesKeys: false)
    }
    for name in names { #expect(try await dictionaries.newest(of: name) == nil) }
    let refusal = await #expect(throws: CollectorRefusal.self) { try await dictionaries.newest(of: Self.namespace) }
    #expect(refusal?.status == 429)
    #expect(try await dictionaries.newest(of: NamespaceName("n0")!) == nil)
  }

  @Test("a namespace of which no packet came takes no place, however often it is asked for") func questions()
    async throws
  {
    let dictionaries = try dictionaries()
    #expect(try await dictionaries.newest(of: Self.namespace) == nil)
    for number in 0..<40 { #expect(try await dictionaries.newest(of: NamespaceName("n\(number)")!) == nil) }
    try Self.offer(60, devices: 1, derived: false, to: dictionaries)
    await dictionaries.maintain()
    #expect(dictionaries.announced(of: Self.namespace) != nil, "it was asked for before its first packet")
    for number in 0..<1000 { _ = try await dictionaries.newest(of: NamespaceName("m\(number)")!) }
    #expect(try await dictionaries.newest(of: Self.namespace) != nil)
  }

  @Test("the namespaces that are known are bounded") func knownNamespaces() {
    var known = KnownNamespaces()
    let names = (0..<5000).map { NamespaceName("n\($0)")! }
    for name in names { known.addAsked(name) }
    let asked = names.filter { name in
      var one = known
      return one.addProven(name)
    }
    #expect(asked.count == KnownNamespaces.askedMax && asked.contains(names[4999]))
    for name in names { known.addProven(name) }
    #expect(names.count { known.isProven($0) } == KnownNamespaces.provenMax)
  }

  @Test("what one process keeps, another finds; the oldest go", arguments: StoreRig.Fleet.allCases)
  func stores(kind: StoreRig.Fleet) async throws {
    let database = try await rig.fleet(kind)
    let stores = [DictionaryStore(database), DictionaryStore(database)]
    #expect(try await stores[0].newest(of: Self.namespace) == nil)
    var ids: [UInt32] = []
    for number in 0..<Int64(KeptDictionary.countMax + 2) {
      let samples = (0..<600).map { Array(Self.line($0, "u\(number)").utf8) }
      let dictionary = try #require(CompressionDictionary.trained(from: samples, bytesMax: 1024))
      let kept = KeptDictionary(dictionary: dictionary, madeTime: 1000 + number)
      try await stores[0].keep(kept, of: Self.namespace)
      ids.append(dictionary.id)
      #expect(try await stores[1].newest(of: Self.namespace) == kept)
    }
    #expect(try await stores[1].find(ids[1], of: Self.namespace) == nil)
    #expect(try await stores[1].find(ids[2], of: Self.namespace)?.id == ids[2])
    #expect(try await stores[1].find(ids[2], of: .prism) == nil)
    let last = try #require(try await stores[1].newest(of: Self.namespace))
    try await stores[0].keep(KeptDictionary(dictionary: last.dictionary, madeTime: 5000), of: .prism)
    #expect(try await stores[1].namespaces(countMax: 2) == [.prism, Self.namespace])
    #expect(try await stores[1].namespaces(countMax: 1) == [.prism])
  }
}
