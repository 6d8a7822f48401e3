import PrismPacket
import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

/// Several packets on their way (docs/delivery.md, "The window").
@Suite("Delivery with a window")
struct DeliveryWindowTests {
  typealias Table = DeliveryTable

  /// To where 2 and 3 are on their way, behind 1, which has its receipt.
  private func twoOnTheirWay() -> Table {
    var table = Table()
    _ = table.after(.collector(CollectorAddress("https://collector.test")))
    for step in DeliveryTableTests.onItsWay { _ = table.after(step.event) }
    #expect(
      table.after(Table.accepts(1, window: 8)) == ["accepted", "circuit succeeded", "post 2 after 1", "post 3 after 2"])
    return table
  }

  private func later(_ table: inout Table, seconds: Int64) {
    let now = table.conditions.instant.uptime + .seconds(seconds)
    table.conditions.instant = Instant(uptime: now, unixMilliseconds: 1_700_000_000_000 + seconds * 1000)
  }

  private static let missing = DeliveryOutcome.Verdict.outOfOrder(status: 425, cause: "status 425", retryAfter: nil)
  private static let stranded = DeliveryOutcome.Verdict.outOfOrder(status: 409, cause: "status 409", retryAfter: nil)
  private static func asks(seconds: Int64) -> DeliveryOutcome.Verdict {
    .unavailable(status: 503, cause: "status 503", retryAfter: .seconds(seconds))
  }

  @Test("receipts come in any order, and are committed in the order of the chain")
  func anyOrder() {
    var table = twoOnTheirWay()
    #expect(table.after(Table.accepts(3, window: 8)) == ["accepted", "circuit succeeded"])
    #expect(
      table.after(Table.accepts(2, window: 8)) == [
        "accepted", "circuit succeeded", "commit delivered 1 delivered 2 delivered 3",
      ])
    #expect(table.after(.committed([])) == ["ended"])
    #expect(table.delivery.queue.lastAccepted == Table.id(3))
  }

  /// With all payloads compressed.
  private static func inGzip(_ number: Int) -> BuiltPacket {
    var packet = Table.built(number)
    packet.seal.compressesAll = true
    return packet
  }

  @Test("packets that are refused in zstd go again in gzip under their ids, and only then are split")
  func withdrawsZstd() {
    var table = Table()
    for step in DeliveryTableTests.onItsWay { _ = table.after(step.event) }
    #expect(
      table.after(Table.accepts(1, window: 8, takesZstd: true)) == ["accepted", "circuit succeeded", "read 2"])
    _ = table.after(.read(Table.id(2), Table.claimed(2)))
    #expect(table.after(.built([Table.built(2, encoding: .zstd)])) == ["post 2 after 1", "read 3"])
    #expect(table.after(.read(Table.id(3), Table.claimed(3))) == ["build 3"])
    #expect(table.after(.built([Table.built(3, encoding: .zstd)])) == ["post 3 after 2"])
    #expect(table.after(Table.answers(2, Table.unacceptable)) == ["read 2"])
    #expect(table.after(Table.answers(3, Table.unacceptable)) == [], "it is read next")
    #expect(table.after(.read(Table.id(2), Table.claimed(2))) == ["build 2"])
    #expect(table.after(.built([Self.inGzip(2)])) == ["post 2 after 1", "read 3"])
    #expect(table.after(.read(Table.id(3), Table.claimed(3))) == ["build 3"])
    #expect(table.after(.built([Self.inGzip(3)])) == ["post 3 after 2"])
    #expect(table.after(Table.accepts(2, window: 8)) == ["accepted", "circuit succeeded"])
    #expect(
      table.after(Table.answers(3, Table.unacceptable)) == ["commit delivered 1 delivered 2 split 3"])
  }

  @Test("a receiver that announces nothing any more gets one packet at a time again")
  func announcesNothing() {
    var table = twoOnTheirWay()
    _ = table.after(Table.accepts(2, window: 1))
    #expect(table.delivery.receiver.features.window == 1 && table.delivery.receiver.window.packets == 1)
  }

  @Test("an answer of the collector of before a reload counts against no other one, and its packet goes to the new one")
  func formerCollector() {
    var table = twoOnTheirWay()
    #expect(table.after(.collector(CollectorAddress("https://other.test"))) == ["circuit forgotten"])
    #expect(table.after(Table.answers(2, Self.asks(seconds: 3600))) == ["read 2"])
    #expect(table.after(Table.accepts(3, window: 8)) == ["accepted", "circuit succeeded"])
    #expect(table.delivery.retry.isClean && table.delivery.receiver.features.window == 1)
    _ = table.after(.read(Table.id(2), Table.claimed(2)))
    #expect(table.after(.built([Table.built(2)])) == ["post 2 after 1"])
    #expect(
      table.after(Table.answers(2, Self.asks(seconds: 3600))) == [
        "circuit failed", "remember", "log not delivered: status 503", "commit delivered 1",
      ])
    #expect(table.delivery.retry.collector == CollectorAddress("https://other.test"))
    _ = table.after(.committed([]))
    #expect(table.after(.collector(CollectorAddress("https://third.test"))) == ["circuit forgotten", "forget"])
  }

  @Test("a failure ends the drain though others are held behind it; those that are missed go again after it")
  func failure() {
    var table = twoOnTheirWay()
    #expect(
      table.after(Table.answers(2, Table.unavailable)) == [
        "circuit failed", "remember", "log not delivered: status 503", "commit delivered 1",
      ])
    #expect(table.after(.committed([])) == ["ended"])
    #expect(table.after(Table.answers(3, Self.missing)) == [], "it is no failure of its own")
    #expect(table.delivery.retry.failuresInRow == 1)
    later(&table, seconds: 2)
    #expect(table.after(.upload(.wanted)) == ["read 2"])
    #expect(table.after(.read(Table.id(2), Table.claimed(2))) == ["build 2"])
    #expect(table.after(.built([Table.built(2)])) == ["post 2 after 1", "commit claims 16"])
    #expect(table.after(.committed([])) == [])
    #expect(
      table.after(Table.accepts(2, window: 8)) == [
        "accepted", "circuit succeeded", "forget", "log deliveredAgain", "read 3",
      ])
    #expect(table.after(.read(Table.id(3), Table.claimed(3))) == ["build 3"])
    #expect(table.after(.built([Table.built(3)])).first == "post 3 after 2")
  }

  @Test("behind a packet that waits for an unmetered network no rows are claimed: they could only be given back again")
  func waitsForUnmetered() {
    var table = twoOnTheirWay()
    _ = table.after(Table.answers(2, Table.unavailable))
    _ = table.after(.committed([]))
    later(&table, seconds: 2)
    table.conditions.isMetered = true
    #expect(table.after(.upload(.wanted)) == ["read 2"])
    #expect(table.after(.read(Table.id(2), Table.claimed(2))) == ["build 2", "commit claims 16"])
    #expect(table.after(.built([Table.built(2, hasWifiOnlyRows: true)])) == [])
    #expect(table.after(.committed([Table.claimed(4)])) == [], "4 is released with the next commit")
    table.conditions.isMetered = false
    #expect(table.after(.upload(.wanted)) == ["post 2 after 1"])
  }

  @Test("what is answered during the pause is settled during the pause")
  func answeredDuringPause() {
    var table = twoOnTheirWay()
    _ = table.after(Table.answers(2, Table.lost))
    _ = table.after(.committed([]))
    later(&table, seconds: 2)
    _ = table.after(.upload(.wanted))
    #expect(table.after(.read(Table.id(2), Table.claimed(2))) == ["build 2", "commit claims 16"])
    #expect(table.after(.built([Table.built(2)])) == ["post 2 after 1"])
    _ = table.after(Table.answers(2, Table.unavailable))
    #expect(table.after(.committed([])) == ["ended"])
    // 2 was taken all the same, and 3 with it; the receipt of 3 stays until 2 has its own.
    #expect(table.after(Table.accepts(3, window: 8)) == ["accepted"])
    #expect(table.delivery.retry.failuresInRow == 2, "the pause stays")
    #expect(table.delivery.queue.entries.map(\.isAccepted) == [false, true])
  }

  @Test("the longest wait that the collector asks for holds for all")
  func asked() {
    var table = twoOnTheirWay()
    _ = table.after(Table.answers(3, Self.asks(seconds: 100)))
    #expect(table.after(Table.answers(2, Self.asks(seconds: 1000))).contains("remember"))
    #expect(table.after(.committed([])).contains("ended"))
    guard case .paused(let pause) = table.delivery.upload else {
      Issue.record("\(table.delivery.upload)")
      return
    }
    #expect(pause.reason == .asked && pause.until >= .seconds(2000))
    #expect(table.delivery.retry.pause == pause, "it survives a restart")
    later(&table, seconds: 999)
    #expect(table.after(.upload(.wanted)) == [])
  }

  @Test("a wait that is asked for after another failure, and a receipt after both, change nothing of the wait")
  func askedDuringPause() {
    var table = twoOnTheirWay()
    _ = table.after(Table.answers(2, Table.lost))
    #expect(table.after(.committed([])) == ["ended"])
    #expect(table.after(Table.answers(3, Self.asks(seconds: 500))) == ["remember", "commit"])
    guard case .paused(let pause) = table.delivery.upload else {
      Issue.record("\(table.delivery.upload)")
      return
    }
    #expect(pause.reason == .asked && pause.until >= .seconds(1500))
  }

  @Test("packets behind one that is split go again under their ids, behind its halves")
  func split() {
    var table = twoOnTheirWay()
    #expect(table.after(Table.answers(2, Table.tooLarge)) == ["commit delivered 1 split 2"])
    #expect(table.after(Table.answers(3, Self.stranded)) == [])
    #expect(table.after(.committed([])) == ["read new"])
    #expect(table.delivery.queue.entries.count == 3)
    #expect(table.delivery.queue.entries.last?.id == Table.id(3))
    #expect(table.delivery.queue.predecessor(of: Table.id(3)) == table.delivery.queue.entries[1].id)
    #expect(table.delivery.queue.entries.last?.mayHaveLeft == true, "it keeps its rows")
  }

  @Test(
    "a packet behind another is no dead letter because that one is missing",
    arguments: [missing, stranded, .tooOld(message: "")])
  func noDeadLetter(_ verdict: DeliveryOutcome.Verdict) {
    var table = twoOnTheirWay()
    #expect(table.after(Table.answers(3, verdict)) == [])
    #expect(table.delivery.queue.entries.map(\.id) == [2, 3].map(Table.id))
    #expect(table.delivery.queue.dispositions.count == 1, "the receipt of 1 alone")
    #expect(table.after(Table.accepts(2, window: 8)) == ["accepted", "circuit succeeded", "read 3"])
  }

  @Test(
    "a clock that is behind the receiver's costs nothing: the rows are claimed under ids of the receiver's time, once")
  func clockBehind() throws {
    var table = Table()
    _ = table.after(.upload(.wanted))
    _ = table.after(.recovered([], lastAccepted: nil, sender: nil))
    _ = table.after(.looked(hasRows: true))
    _ = table.after(.committed([Table.claimed(1)]))
    _ = table.after(.built([Table.built(1)]))
    _ = table.after(.committed([Table.claimed(2)]))
    let time = table.conditions.instant.unixMilliseconds + 40 * 86_400_000
    let tooOld = { (id: PacketID) in
      Delivery.Event.answered(id, DeliveryOutcome(.tooOld(message: "", receiverTime: time), mayHaveLeft: true))
    }
    let actions = table.delivery.handle(tooOld(Table.id(1)), table.conditions)
    guard case .commit(let turn) = actions.last, let claim = turn.claims.first else {
      Issue.record("\(actions.map(Table.words))")
      return
    }
    #expect(turn.dispositions == [1, 2].map { .released(Table.id($0)) })
    #expect(claim.packetID.unixMilliseconds == time)
    let again = ClaimedPacket(
      id: claim.packetID, namespace: claim.namespace, kind: .meta, ledgerHeader: "",
      metas: [0x7B, 0x7D],
      itemCount: 2, payloads: [], clock: Table.claimed(1).clock)
    #expect(table.after(.committed([again])) == ["build new"])
    #expect(table.after(.built([Table.built(again)])).contains("post new"))
    #expect(table.after(tooOld(claim.packetID)).contains("log deadLetter(status: 410)"), "the clocks don't explain it")
  }

  @Test("of a packet whose predecessor is accepted, a missing one is a failure")
  func missesAccepted() {
    var table = Table()
    for step in DeliveryTableTests.onItsWay { _ = table.after(step.event) }
    #expect(table.after(Table.answers(1, Self.missing)).contains("circuit failed"))
  }

  @Test("packets on their way never pass the rest of the budget")
  func budget() {
    var table = Table()
    for step in DeliveryTableTests.onItsWay { _ = table.after(step.event) }
    table.conditions.flowRestBytes = 2500  // a packet is counted as some 2,100 bytes
    #expect(table.after(Table.accepts(1, window: 8)) == ["accepted", "circuit succeeded", "post 2 after 1"])
    table.conditions.flowRestBytes = 400
    #expect(
      table.after(Table.accepts(2, window: 8)) == [
        "accepted", "circuit succeeded", "commit delivered 1 delivered 2 released 3 claims 16",
      ])
  }

  @Test("while the circuit is open, one packet goes at a time")
  func probe() {
    var table = Table()
    for step in DeliveryTableTests.onItsWay { _ = table.after(step.event) }
    table.conditions.isProbe = true
    #expect(table.after(Table.accepts(1, window: 8)) == ["accepted", "circuit succeeded", "post 2 after 1"])
  }

  @Test("the window opens by one with a receipt up to what is allowed, and halves once for packets that fail together")
  func size() {
    var window = SendWindow()
    for _ in 0..<100 { window.open(most: 16) }
    #expect(window.packets == 16)
    window.shrink()
    window.shrink()
    #expect(window.packets == 8)
    window.open(most: 16)
    #expect(window.packets == 9)
    window.open(most: 1)
    #expect(window.packets == 1)
    window.shrink()
    #expect(window.packets == 1)
  }

  @Test("after a store that failed, packets on their way keep their place and their answers")
  func storeFailed() {
    var table = twoOnTheirWay()
    _ = table.after(Table.answers(2, Table.lost))
    #expect(table.after(.storeFailed) == ["ended"])
    later(&table, seconds: 3)
    #expect(table.after(.upload(.wanted)) == ["commit delivered 1"])
    #expect(table.after(.committed([])) == ["recover"])
    let inFlight = [2, 3].map { PacketInFlight(id: Table.id($0), itemCount: 2) }
    let sender = StreamIdentity(deviceID: "d")
    #expect(table.after(.recovered(inFlight, lastAccepted: Table.id(1), sender: sender)) == ["read 2"])
    #expect(table.delivery.queue.entries.map(\.isSending) == [false, true])
    #expect(table.after(Table.accepts(3, window: 8)).contains("accepted"))
  }
}
