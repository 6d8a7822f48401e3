import PrismBase
import PrismOutputs
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The promises of any store of packets.
@Suite("Stores of packets")
struct ConformanceTests {
  @Test("a packet is stored once; again it is a duplicate, in the same group, too", arguments: StoreRig.Kind.allCases)
  func once(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let packet = try StoreRig.packet([1, 2])
    let group = [PacketSubmission(packet: packet), PacketSubmission(packet: packet)]
    #expect(try await store.take(group) == [.stored(chainIsBroken: false), .duplicate])
    #expect(try await store.take(packet) == .duplicate)
    #expect(try await store.numbers() == [1, 2])
    await store.close()
  }

  @Test("equal ids of two devices, namespaces or kinds are different packets", arguments: StoreRig.Kind.allCases)
  func streams(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let id = try StoreRig.packet([0]).id
    for packet in [
      try StoreRig.packet([1], id: id), try StoreRig.packet([2], device: "e", id: id),
      try StoreRig.packet([3], namespace: "shop", id: id), try StoreRig.packet([4], payload: [], id: id),
    ] {
      #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    }
    #expect(try await store.numbers() == [1, 2, 3, 4])
    await store.close()
  }

  @Test("packets of a stream in one group find each other", arguments: StoreRig.Kind.allCases)
  func chain(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    var (group, last) = ([PacketSubmission](), PacketID?.none)
    for number in 0..<20 {
      let packet = try StoreRig.packet([number], after: last)
      group.append(PacketSubmission(packet: packet))
      last = packet.id
    }
    #expect(try await store.take(group) == [PacketOutcome](repeating: .stored(chainIsBroken: false), count: 20))
    #expect(try await store.state(of: StreamID(group[0].packet.delivery.context))?.packets == 20)
    #expect(try await store.numbers() == Array(0..<20))
    await store.close()
  }

  @Test(
    "a missing predecessor: waited for where the stream is known, noted where it is not, or late",
    arguments: StoreRig.Kind.allCases)
  func missing(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let lost = try StoreRig.packet([0]).id
    #expect(try await store.take(StoreRig.packet([1], after: lost)) == .stored(chainIsBroken: true))
    let second = try StoreRig.packet([2], after: try StoreRig.packet([0]).id)
    #expect(try await store.take(second) == .predecessorMissing)
    #expect(try await store.take(second, isLate: true) == .stored(chainIsBroken: true))
    #expect(try await store.take(second) == .duplicate)
    #expect(try await store.page(ReportFilter(scope: .everything)).map(\.chainIsBroken) == [true, true])
    await store.close()
  }

  @Test(
    "a predecessor that is on its way is waited for, though the stream is not known, and never done without",
    arguments: StoreRig.Kind.allCases)
  func pending(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let first = try StoreRig.packet([1])
    let second = try StoreRig.packet([2], after: first.id, pending: 1)
    let third = try StoreRig.packet([3], after: second.id, pending: 2)
    #expect(
      try await store.take([PacketSubmission(packet: third), PacketSubmission(packet: second)])
        == [.predecessorMissing, .predecessorMissing])
    #expect(try await store.take(second, isLate: true) == .predecessorMissing)
    var stranded = PacketSubmission(packet: try StoreRig.packet([4], after: first.id))
    stranded.isPredecessorRefused = true
    #expect(try await store.take([stranded]) == [.predecessorMissing])
    #expect(try await store.numbers().isEmpty)
    for packet in [first, second, third] {
      #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    }
    #expect(try await store.take([stranded, stranded]) == [.stored(chainIsBroken: false), .duplicate])
    #expect(try await store.numbers() == [1, 2, 3, 4])
    await store.close()
  }

  @Test(
    "an id from before those that are kept is too old where its stream has a newer one, and only there",
    arguments: StoreRig.Kind.allCases)
  func tooOld(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let ids = OldIDs(now: rig.now(kind))
    // A device that was offline for 40 days sends what it has, in its order.
    let first = try StoreRig.packet([1], id: ids.made(daysAgo: 45))
    let second = try StoreRig.packet([2], id: ids.made(daysAgo: 44), after: first.id)
    let last = try StoreRig.packet([4], id: ids.made(daysAgo: 0), after: ids.made(daysAgo: 1))
    for packet in [first, second, try StoreRig.packet([3], id: ids.made(daysAgo: 43))] {
      #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    }
    #expect(try await store.take(last, isLate: true) == .stored(chainIsBroken: true))
    // Recorded, or of a device that the store knows nothing of any more.
    for (before, pending) in [(PacketID?.none, 0), (ids.made(daysAgo: 41), 0), (ids.made(daysAgo: 41), 1)] {
      let old = try StoreRig.packet([99], id: ids.made(daysAgo: 40), after: before, pending: pending)
      #expect(try await store.take(old) == .tooOld)
      #expect(try await store.take(old, isLate: true) == .tooOld)
    }
    #expect(try await store.take(second) == .duplicate)
    let recent = ids.made(daysAgo: 29)
    #expect(
      try await store.take(StoreRig.packet([98], id: recent, after: ids.made(daysAgo: 31))) == .predecessorMissing)
    #expect(try await store.take(StoreRig.packet([5], id: recent)) == .stored(chainIsBroken: false))
    // Its clock went back to 1970: its packets name the ones before them.
    let back = try StoreRig.packet([6], id: ids.made(in: 1970), after: last.id)
    let next = try StoreRig.packet([7], id: ids.made(in: 1970), after: back.id, pending: 1)
    #expect(try await store.take([PacketSubmission(packet: back), PacketSubmission(packet: next)]).count == 2)
    let other = try StoreRig.packet([8], device: "e", id: ids.made(daysAgo: 40), after: ids.made(daysAgo: 41))
    #expect(try await store.take(other) == .stored(chainIsBroken: true))
    #expect(try await store.numbers() == Array(1...8))
    await store.close()
  }

  @Test(
    "of a stream is known how many packets there were, and its newest ledger",
    arguments: StoreRig.Kind.allCases)
  func state(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let first = try StoreRig.packet([1], ledger: "stored=1")
    let stream = StreamID(first.delivery.context)
    #expect(try await store.state(of: stream) == nil)
    _ = try await store.take(first)
    let second = try StoreRig.packet([2], after: first.id)
    _ = try await store.take(second)
    #expect(
      try await store.state(of: stream) == StreamState(packets: 2, ledger: "stored=1;carried=1"))
    await store.close()
  }

  @Test(
    "a report comes back as it was sent", arguments: StoreRig.Kind.allCases, [nil, [], [0, 255, 10]] as [[UInt8]?])
  func whole(kind: StoreRig.Kind, payload: [UInt8]?) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let packet = try StoreRig.packet([7], device: "device-1", type: "a \u{1F600} type", payload: payload)
    _ = try await store.take(packet)
    let found = try #require(try await store.page(ReportFilter(scope: .everything)).first)
    #expect(found.payload == nil && found.payloadBytes == payload?.count && !found.isDamaged)
    let report = try #require(try await store.report(found.id, .everything))
    #expect(report.payload == payload && report.meta == Array(packet.reports.meta(packet.rows[0])))
    #expect((report.type, report.reportID, report.createdTime) == ("a \u{1F600} type", "r7", 7))
    #expect((report.device, report.packetID) == ("device-1", packet.id.description))
    #expect(try await store.report(found.id + 1, .everything) == nil)
    await store.close()
  }

  @Test(
    "rows with common information come back byte for byte, also beside rows of another session",
    arguments: StoreRig.Kind.allCases)
  func common(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let sessions = ["\u{e9}\u{1F600}", "two"].map { name in
      #""session":"\#(name)","app":"8.12.0","device":"till-9","\\u0000":"\#(String(repeating: "x", count: 80))""#
    }
    let packet = try StoreRig.packet(
      Array(0..<12), members: { $0 == 6 ? nil : #""own":[\#($0),{"a":"},"}],"# + sessions[$0 / 8] })
    #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    #expect(try await store.take(StoreRig.packet([12, 13], after: packet.id, members: { _ in sessions[0] })) != nil)
    let found = try await store.page(ReportFilter(scope: .everything))
    #expect(found.prefix(12).map(\.meta) == packet.rows.map { Array(packet.reports.meta($0)) })
    #expect(found.count == 14)
    var wanted = ReportFilter(scope: .everything)
    wanted.metas = [try MetaCondition("session=two")]
    #expect(try await store.numbers(wanted) == [8, 9, 10, 11])
    await store.close()
  }

  @Test(
    "rows with common lines come back as the protocol merges them: their own members first, and they win",
    arguments: StoreRig.Kind.allCases, [nil, 1, 9000] as [Int?])
  func commonLines(kind: StoreRig.Kind, payloadBytes: Int?) async throws {
    let payload = payloadBytes.map { [UInt8](repeating: 7, count: $0) }
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let pad = String(repeating: "x", count: 80)
    let commons = [
      #""app":"\#u{e9}\#u{1F600}","pad":"\#(pad)","\\u0000":{"a":[1,"},"]}"#, #""app":"two","pad":"\#(pad)""#,
      #""REPORT_ID":"of all","CREATE_TIME":5,"MONITOR_TYPE":"common","pad":"\#(pad)""#, #""app":"short""#,
    ]
    // A row without members of its own, some with members of both, one alone with what it has in common.
    let own = { (number: Int) in number % 5 == 4 ? #""app":"own","own":\#(number)"# : #""own":[\#(number)]"# }
    let packet = try StoreRig.packet(
      Array(0..<40), payload: payload, common: { $0 == 39 ? #""alone":"\#(pad)""# : commons[$0 / 10] }, members: own)
    #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    let next = try StoreRig.packet(
      Array(40..<50), payload: payload, after: packet.id, common: { $0 < 45 ? commons[0] : nil }, members: own)
    #expect(try await store.take(next) == .stored(chainIsBroken: false))
    var filter = ReportFilter(scope: .everything)
    filter.hasPayloads = true
    let found = try await store.page(filter)
    let metas = (0..<50).map { number in
      let head =
        #"{"MONITOR_TYPE":"t","REPORT_ID":"r\#(number)","CREATE_TIME":\#(number),"n":\#(number),\#(own(number))"#
      let common = number == 39 ? #""alone":"\#(pad)""# : number < 40 ? commons[number / 10] : commons[0]
      let isOwn = number % 5 == 4 && common.hasPrefix(#""app""#)
      let left = isOwn ? common.split(separator: ",", maxSplits: 1).dropFirst().joined() : common
      let missing = number / 10 == 2 ? #""pad":"\#(pad)""# : left
      return number < 45 ? head + (missing.isEmpty ? "" : "," + missing) + "}" : head + "}"
    }
    #expect(found.map { String(decoding: $0.meta, as: UTF8.self) } == metas)
    #expect(found.map(\.reportID) == (0..<50).map { "r\($0)" } && found.allSatisfy { $0.payload == payload })
    #expect(try await store.report(found[39].id, .everything)?.meta == found[39].meta)
    await store.close()
  }

  @Test(
    "conditions hold for common members as for a row's own, in each store", arguments: StoreRig.Kind.allCases)
  func commonMetas(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let pad = #""pad":"\#(String(repeating: "x", count: 80))""#
    // Two rows each, so that they share it; the second has a member "a" in a deeper place of its own.
    let members = { (number: Int) in number % 2 == 0 ? #""y":1"# : #""y":{"a":12,"c":"x"},"u":"\"b\"""# }
    let packet = try StoreRig.packet(
      Array(0..<2 * Self.metas.count), common: { "\(Self.metas[$0 / 2]),\(pad)" }, members: members)
    _ = try await store.take(packet)
    for path in ["a", "b", "b.c", "b.b", "\"d.e\"", "f", "z", "A", "absent", "a.a", "y", "y.a", "y.c", "pad", "n"] {
      for comparison in MetaCondition.Comparison.allCases {
        for value in comparison == .exists ? [""] : ["12", "x", "true", "null", "-1000", "", "\u{1F600}", "3"]
        where Self.takes(value, comparison) {
          var filter = ReportFilter(scope: .everything)
          filter.metas = [try MetaCondition("\(path)\(comparison.rawValue)\(value)")]
          let expected = (0..<2 * Self.metas.count).filter { number in
            let meta = #"{"n":\#(number),\#(members(number)),\#(Self.metas[number / 2]),\#(pad)}"#
            return filter.metas[0].holds(for: Array(meta.utf8))
          }
          #expect(try await store.numbers(filter) == expected, "\(filter.metas[0])")
        }
      }
    }
    var filter = ReportFilter(scope: .everything)
    filter.metas = [try MetaCondition("a>=12"), try MetaCondition("b.c~x"), try MetaCondition("y.a=12")]
    #expect(try await store.numbers(filter) == [1, 3])
    await store.close()
  }

  @Test("pages are filtered, limited, and go on behind the last one", arguments: StoreRig.Kind.allCases)
  func pages(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let seed = SeededRandom.announcedSeed("pages of reports")
    var random = SeededRandom(seed: seed)
    var sent: [(device: String, namespace: String, type: String, number: Int)] = []
    // More than one block of ids.
    for round in 0..<60 {
      let (device, namespace, type) = (
        random.pick(["d", "e"]), random.pick(["prism", "shop"]), random.pick(["t", "u"])
      )
      let count = Int.random(in: 1...250, using: &random)
      let numbers = Array(round * 1000..<round * 1000 + count)
      _ = try await store.take(StoreRig.packet(numbers, device: device, namespace: namespace, type: type))
      sent += numbers.map { (device, namespace, type, $0) }
    }
    for device in [nil, "d"] {
      for namespace in [nil, "shop"] {
        for type in [nil, "u", "absent"] {
          var filter = ReportFilter(scope: .everything)
          (filter.device, filter.namespace, filter.type) = (device, namespace, type)
          filter.limit = Int.random(in: 50...1000, using: &random)
          let expected = sent.filter {
            [nil, $0.device].contains(device) && [nil, $0.namespace].contains(namespace)
              && [nil, $0.type].contains(type)
          }
          #expect(try await store.numbers(filter) == expected.map(\.number), "\(filter)")
        }
      }
    }
    var filter = ReportFilter(scope: .everything)
    filter.since = SystemTime().unixMilliseconds + 60_000
    #expect(try await store.numbers(filter) == [])
    await store.close()
  }

  /// Only whether a text is empty can be asked.
  private static func takes(_ value: String, _ comparison: MetaCondition.Comparison) -> Bool {
    !value.isEmpty || [.exists, .equal, .notEqual].contains(comparison)
  }

  private static let metas = [
    #""a":12,"b":{"c":"x"},"d.e":1"#, #""a":12.0,"b":{"c":"xyz"},"f":null"#, #""a":"12","b":{"c":["x"]},"f":true"#,
    #""a":-1e3,"b":"x","f":false"#, #""b":{"c":12},"f":"true","note":"a""#, #""a":9007199254740993,"b":{"b":"Z"}"#,
    #""a":{"a":1},"z":"it\u0000s","f":"null""#, #""a":"","b":{"c":""}"#, #""a":100,"z":"'; DROP TABLE reports; --""#,
    #""a":"\ud83d\ude00","A":1"#,
  ]

  @Test(
    "conditions on the meta are the same in each store, and text of a condition is never SQL",
    arguments: StoreRig.Kind.allCases)
  func metas(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    _ = try await store.take(StoreRig.packet(Array(Self.metas.indices), members: { Self.metas[$0] }))
    let values = [
      "12", "12.0", "x", "true", "null", "-1000", "0", "", "Z", "'; DROP TABLE reports; --", "1e999", "\u{1F600}",
    ]
    for path in ["a", "b", "b.c", "b.b", "\"d.e\"", "d.e", "f", "z", "A", "absent", "a' OR 1=1", "a.a"] {
      for comparison in MetaCondition.Comparison.allCases {
        for value in comparison == .exists ? [""] : values where Self.takes(value, comparison) {
          let condition = try MetaCondition(
            "\(path == "a' OR 1=1" ? "\"\(path)\"" : path)\(comparison.rawValue)\(value)")
          #expect(condition.comparison == comparison && condition.value == value)
          var filter = ReportFilter(scope: .everything)
          filter.metas = [condition]
          let expected = Self.metas.indices.filter { condition.holds(for: Array("{\(Self.metas[$0])}".utf8)) }
          #expect(try await store.numbers(filter) == expected, "\(condition)")
        }
      }
    }
    var filter = ReportFilter(scope: .everything)
    filter.metas = [try MetaCondition("a>=12"), try MetaCondition("b.c~x")]
    #expect(try await store.numbers(filter) == [0, 1])
    await store.close()
  }

  @Test("a name in a filter is text, not SQL", arguments: StoreRig.Kind.allCases)
  func namesOfFilters(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    _ = try await store.take(StoreRig.packet([1, 2]))
    for name in ["' OR ''='", "d' OR 1=1 --", "$1", "d\u{0301}", ""] {
      var filters = [ReportFilter](repeating: ReportFilter(scope: .everything), count: 3)
      (filters[0].device, filters[1].type, filters[2].namespace) = (name, name, name)
      for filter in filters { #expect(try await store.numbers(filter).isEmpty, "\(filter)") }
    }
    await store.close()
  }

  @Test("newest first goes back to the first report, between two ids", arguments: StoreRig.Kind.allCases)
  func newestFirst(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    for round in 0..<20 {
      _ = try await store.take(
        StoreRig.packet(Array(round * 500..<round * 500 + 500), type: round.isMultiple(of: 7) ? "rare" : "t"))
    }
    for type in [nil, "rare"] {
      var filter = ReportFilter(scope: .everything)
      (filter.type, filter.limit, filter.isNewestFirst) = (type, 333, true)
      var numbers: [Int?] = []
      while case let page = try await store.page(filter), let last = page.last {
        numbers += page.map { StoreRig.number($0) }
        filter.before = last.id
      }
      let expected = (0..<10_000).filter { type == nil || ($0 / 500).isMultiple(of: 7) }
      #expect(numbers == expected.reversed())
    }
    var filter = ReportFilter(scope: .everything)
    filter.after = .max
    #expect(try await store.page(filter).isEmpty)
    (filter.after, filter.before) = (5, 6)
    #expect(try await store.page(filter).isEmpty)
    filter.before = 0
    #expect(try await store.page(filter).isEmpty)
    await store.close()
  }
}
