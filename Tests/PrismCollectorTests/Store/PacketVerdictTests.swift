import PrismProtocol
import Testing

@testable import PrismCollector

/// The verdict as a table: every store asks it, so what holds here holds on SQLite and on PostgreSQL.
@Suite("What becomes of a packet") struct PacketVerdictTests {
  private static let now: Int64 = 1_700_000_000_000

  /// A stream as a case knows it. Ids are named by the days before now on which they were made; 20,000 is before 2020.
  struct Known: Sendable {
    var packets: Int64 = 0
    var ids: [Int64] = []
    var newest: Int64?
    var forgotten: Int64?
    var forgottenUnset: Int64?
  }

  private static func time(_ daysAgo: Int64) -> Int64 { now - daysAgo * 86_400_000 }
  private static func id(_ daysAgo: Int64) -> PacketID {
    PacketID(high: UInt64(max(0, time(daysAgo))) << 16 | 0x7000, low: UInt64(daysAgo) | 1 << 63)
  }

  private static func verdict(
    _ known: Known, _ id: Int64, after predecessor: Int64?, pending: Bool = false, late: Bool = false,
    refused: Bool = false, acceptedBy store: Int64? = nil
  ) throws -> PacketOutcome {
    let stream = KnownStream(
      number: 1, packets: known.packets, ids: Set(known.ids.map { Self.id($0) }),
      newestTime: known.newest.map { time($0) },
      forgottenTime: known.forgotten.map { time($0) }, forgottenUnsetTime: known.forgottenUnset.map { time($0) })
    let packet = try StoreRig.packet(
      [1], id: Self.id(id), after: predecessor.map { Self.id($0) }, pending: pending ? 1 : 0,
      ledger: Ledger().header(epoch: "e", store: store.map { StoreMark(id: $0) }))
    let submission = PacketSubmission(packet: packet, isLate: late, isPredecessorRefused: refused)
    return stream.verdict(on: submission, idsSince: now - PacketID.knownMilliseconds, in: StoreMark(id: 1, life: 3))
  }

  private static let used = Known(packets: 5, ids: [1], newest: 1)

  @Test(
    "a known id is a duplicate also behind an unknown packet, and a known predecessor is enough",
    arguments: [
      (Known(), 0, nil, .stored(chainIsBroken: false)), (used, 0, nil, .stored(chainIsBroken: false)),
      (used, 0, 1, .stored(chainIsBroken: false)), (used, 1, nil, .duplicate), (used, 1, 3, .duplicate),
      (Known(packets: 5, ids: [1, 40], newest: 1, forgotten: 35), 40, nil, .duplicate),
      (Known(packets: 5, ids: [1], newest: 1, forgotten: 35), 50, 1, .stored(chainIsBroken: false)),
    ] as [(Known, Int64, Int64?, PacketOutcome)])
  func known(known: Known, id: Int64, predecessor: Int64?, outcome: PacketOutcome) throws {
    #expect(try Self.verdict(known, id, after: predecessor) == outcome)
    #expect(try Self.verdict(known, id, after: predecessor, late: true) == outcome)
  }

  @Test(
    "an unknown predecessor is waited for by a stream that is known, and by a sender that says that it is on its way",
    arguments: [
      (Known(), false, false, false, .stored(chainIsBroken: true)), (Known(), true, false, false, .predecessorMissing),
      (Known(), false, true, false, .stored(chainIsBroken: true)), (Known(), true, true, false, .predecessorMissing),
      (Known(), false, true, true, .predecessorMissing), (used, false, false, false, .predecessorMissing),
      (used, false, true, false, .stored(chainIsBroken: true)), (used, true, true, false, .predecessorMissing),
      (used, false, true, true, .predecessorMissing),
    ] as [(Known, Bool, Bool, Bool, PacketOutcome)])
  func awaited(known: Known, pending: Bool, late: Bool, refused: Bool, outcome: PacketOutcome) throws {
    let found = try Self.verdict(known, 0, after: 2, pending: pending, late: late, refused: refused)
    #expect(found == outcome)
  }

  @Test(
    "packets that another store accepted are not awaited, and the chain is not broken without them",
    arguments: [
      (Known(), 1, false, .stored(chainIsBroken: true)), (Known(), 2, false, .stored(chainIsBroken: false)),
      (used, 1, false, .predecessorMissing), (used, 2, false, .stored(chainIsBroken: false)),
      (Known(), 2, true, .predecessorMissing), (used, 2, true, .predecessorMissing),
    ] as [(Known, Int64, Bool, PacketOutcome)])
  func elsewhere(known: Known, store: Int64, pending: Bool, outcome: PacketOutcome) throws {
    #expect(try Self.verdict(known, 0, after: 2, pending: pending, acceptedBy: store) == outcome)
  }

  @Test(
    "an id that may be forgotten is too old: by a forgotten one that is newer, or by both clocks, never by one alone",
    arguments: [
      (Known(packets: 5, newest: 1), 29, false), (Known(packets: 5, newest: 1), 32, true),
      (Known(packets: 5, newest: 1), 31, false), (Known(packets: 5, newest: 20), 45, false),
      (Known(packets: 5, newest: -40), 20, false), (Known(packets: 5), 45, false), (Known(), 45, false),
      (Known(packets: 5, newest: 1, forgotten: 10), 10, true), (Known(packets: 5, newest: 1, forgotten: 10), 9, false),
      (Known(packets: 5, newest: 1), 20_000, false), (Known(packets: 5, newest: 1, forgotten: 10), 20_000, false),
      (Known(packets: 5, newest: 1, forgottenUnset: 19_000), 19_500, true),
      (Known(packets: 5, newest: 1, forgottenUnset: 19_000), 18_500, false),
      (Known(packets: 5, newest: 1, forgottenUnset: 19_000), 10, false),
    ] as [(Known, Int64, Bool)])
  func old(known: Known, id: Int64, isTooOld: Bool) throws {
    #expect(try Self.verdict(known, id, after: nil) == (isTooOld ? .tooOld : .stored(chainIsBroken: false)))
    let late = try Self.verdict(known, id, after: 3, late: true)
    #expect(late == (isTooOld ? .tooOld : .stored(chainIsBroken: true)))
  }

  @Test("packets of a group are held to those before them, each stream apart") func group() throws {
    let first = try StoreRig.packet([1], id: Self.id(3))
    let second = try StoreRig.packet([2], id: Self.id(2), after: first.id)
    let other = try StoreRig.packet([3], device: "e", id: Self.id(2), after: first.id)
    let old = try StoreRig.packet([4], id: Self.id(40))
    let submissions = [first, second, first, other, old].map { PacketSubmission(packet: $0) }
    let group = PacketGroup(submissions, [:], QuotaRoom(), idsSince: Self.now - PacketID.knownMilliseconds, in: nil)
    #expect(
      group.outcomes == [
        .stored(chainIsBroken: false), .stored(chainIsBroken: false), .duplicate, .stored(chainIsBroken: true), .tooOld,
      ])
    #expect(group.stored.map(\.packet.id) == [first.id, second.id, other.id])
    #expect(group.streams[StreamID(first.delivery.context)]?.packets == 2)
  }
}
