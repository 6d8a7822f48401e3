import PrismBase
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// One script for both databases: what a sender, a device or a reader is answered does not depend on which one it is.
@Suite("SQLite and PostgreSQL answer alike") struct DifferentialTests {
  private static let devices = ["d0", "d1", "d2"]

  /// A device's packets, as it sends them or as it should not.
  private struct Sender {
    let device: String
    let now: Int64
    private(set) var sent: [OpenedPacket] = []
    private var number = 0

    init(_ device: String, now: Int64) { (self.device, self.now) = (device, now) }

    /// Milliseconds since 1970: mostly now, else long ago, ahead, or by a clock that was not set.
    private func time(_ random: inout SeededRandom) -> Int64 {
      let days: Int64 = random.pick([0, 0, 0, 0, 0, 1, 29, 31, 40, 45, -2])
      let isUnset = Int.random(in: 0..<12, using: &random) == 0
      return isUnset ? Int64.random(in: 0..<86_400_000, using: &random) : now - days * 86_400_000
    }

    mutating func next(_ random: inout SeededRandom) throws -> OpenedPacket {
      if !sent.isEmpty, Int.random(in: 0..<5, using: &random) == 0 { return random.pick(sent) }
      var predecessor = sent.last?.id
      switch Int.random(in: 0..<8, using: &random) {
      case 0: predecessor = nil
      case 1: predecessor = PacketID(unixMilliseconds: time(&random), using: &random)
      case 2: predecessor = sent.isEmpty ? nil : random.pick(sent).id
      default: break
      }
      let numbers = Array(number..<number + Int.random(in: 1...3, using: &random))
      number += numbers.count
      let isPending = predecessor != nil && Int.random(in: 0..<10, using: &random) == 0
      let packet = try StoreRig.packet(
        numbers, device: device, type: random.pick(["a", "b"]),
        payload: Int.random(in: 0..<4, using: &random) == 0 ? [1, 2] : nil,
        id: PacketID(unixMilliseconds: time(&random), using: &random), after: predecessor, pending: isPending ? 1 : 0,
        ledger: "stored=\(number)", reportPrefix: device, members: { $0 % 2 == 0 ? #""half":\#($0 / 2)"# : nil })
      sent.append(packet)
      return packet
    }
  }

  private static func both(_ rig: StoreRig) async throws -> [any PacketStore] {
    [try rig.sqlite { $0.time = SystemTime() }, try await PostgreSQLRig().store()]
  }

  @Test("each packet of a group gets the same outcome, and what is stored is the same, in the same order")
  func packets() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("packets into both databases"))
    for _ in 0..<6 * soakFactor {
      let stores = try await Self.both(StoreRig())
      var senders = Self.devices.map { Sender($0, now: SystemTime().unixMilliseconds) }
      for step in 0..<60 {
        var group: [PacketSubmission] = []
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          let index = Int.random(in: senders.indices, using: &random)
          group.append(
            PacketSubmission(
              packet: try senders[index].next(&random), isLate: Int.random(in: 0..<4, using: &random) == 0,
              isPredecessorRefused: Int.random(in: 0..<12, using: &random) == 0))
        }
        let outcomes = [try await stores[0].take(group), try await stores[1].take(group)]
        #expect(outcomes[0] == outcomes[1], "step \(step): \(group.map { Self.described($0) })")
        guard outcomes[0] == outcomes[1] else { break }
      }
      try await Self.expectAlike(stores, Set(senders.flatMap { $0.sent.map { StreamID($0.delivery.context) } }))
      for store in stores { await store.close() }
    }
  }

  private static func described(_ one: PacketSubmission) -> String {
    let delivery = one.packet.delivery
    return "\(delivery.context.packetID) after \(delivery.dependsOn.map(\.description) ?? "-")"
      + (one.isLate ? " late" : "") + (one.needsPredecessor ? " pending" : "")
  }

  private static func expectAlike(_ stores: [any PacketStore], _ streams: Set<StreamID>) async throws {
    for stream in streams {
      let states = [try await stores[0].state(of: stream), try await stores[1].state(of: stream)]
      #expect(states[0] == states[1], "\(stream)")
    }
    var lists: [[String]] = []
    for store in stores {
      var filter = ReportFilter(scope: .everything)
      (filter.limit, filter.hasPayloads) = (1000, true)
      let reports = try await store.page(filter)
      lists.append(
        reports.map {
          "\($0.device) \($0.kind) \($0.type) \($0.reportID) \($0.createdTime ?? 0) \($0.packetID) \($0.chainIsBroken) "
            + String(decoding: $0.meta, as: UTF8.self) + " \($0.payload ?? [])"
        })
    }
    #expect(lists[0] == lists[1])
    #expect(lists[0].count > 50, "most packets are stored")
    try await expectAlike(
      stores, conditions: ["half", "half = 3", "half != 3", "half < 10", "half >= 2.5", "n ~ 1", "n = 7"])
  }

  /// The same reports match, and are counted by the same words.
  private static func expectAlike(_ stores: [any PacketStore], conditions: [String]) async throws {
    for text in conditions {
      var (filter, found) = (ReportFilter(scope: .everything), [[Int?]]())
      (filter.limit, filter.metas) = (1000, [try MetaCondition(text)])
      for store in stores { found.append(try await store.page(filter).map { StoreRig.number($0) }) }
      #expect(found[0] == found[1], "\(text)")
    }
  }

  // MARK: Questions

  /// Members that two databases of JSON read in two ways.
  private static let members = [
    #""a":{"b":1,"b":2}"#, #""k":9223372036854775809"#, #""k":9223372036854775808"#, #""s":"x\u0000y""#, #""f":1.50"#,
    #""f":1.5"#, #""f":15e-1"#, #""f":true"#, #""f":null"#, #""f":{"z":1, "a":2}"#, #""f":[1,2]"#, #""f":"true""#,
    #""k":-0.0"#, #""k":0"#, #""k":123456789012345678901234567890.5"#, #""s":"\ud83d\ude00""#, #""\u0061":{"b":3}"#,
  ]

  @Test("the same reports are found, counted and measured, with all that JSON allows")
  func questions() async throws {
    let stores = try await Self.both(StoreRig())
    for store in stores {
      _ = try await store.take(
        StoreRig.packet(
          Array(Self.members.indices), common: { _ in #""shared":{"k":18446744073709551616},"pad":"\#(Self.pad)""# },
          members: { Self.members[$0] }))
    }
    let conditions: KeyValuePairs<String, [Int]> = [
      "a.b = 1": [], "a.b = 2": [0], "a.b >= 2": [0, 16], "k = 9223372036854775808": [2],
      "k > 9223372036854775808": [1, 14], "k = 0": [12, 13], "s ~ y": [3], "s = x": [], "f = 1.5": [4, 5, 6],
      "f = true": [7, 11], "f = null": [8], "f ~ t": [11], "f": Array(4...11), "shared.k > 18446744073709551615": [],
    ]
    for (text, expected) in conditions {
      var filter = ReportFilter(scope: .everything)
      (filter.limit, filter.metas) = (1000, [try MetaCondition(text)])
      let all = (text.hasPrefix("shared") ? Array(Self.members.indices) : expected).map { "r\($0)" }
      for store in stores { #expect(try await store.page(filter).map(\.reportID) == all, "\(text)") }
    }
    for path in [["f"], ["k"], ["a", "b"], ["shared", "k"], ["s"]] {
      let grouping = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime, key: .meta(path))
      var answers: [[String]] = []
      for store in stores {
        let queries = store.queries
        let counts = try await queries.counts(ReportFilter(scope: .everything), grouping).map {
          "\($0.group): \($0.count)"
        }
        let numbers = try await queries.numbers(ReportFilter(scope: .everything), path: path, grouping, limit: 1000)
          .numbers.map { "\($0.group) \($0.values)" }
        answers.append(counts.sorted() + numbers.sorted())
      }
      #expect(answers[0] == answers[1] && answers[0].count > 1, "\(path)")
    }
    for store in stores { await store.close() }
  }

  private static let pad = String(repeating: "x", count: 80)
}
