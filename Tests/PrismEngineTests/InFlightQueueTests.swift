import PrismBase
import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

@Suite("The queue of packets in flight")
struct InFlightQueueTests {
  static let ids = (1...4).map { PacketID("018bcfe5-6800-7000-8000-00000000000\($0)")! }

  /// Three claimed packets.
  private func threeClaimed() -> InFlightQueue {
    var queue = InFlightQueue()
    queue.add(
      Self.ids[..<3].map {
        ClaimedPacket(
          id: $0, namespace: .prism, kind: .meta, ledgerHeader: "", metas: [], itemCount: 2,
          payloads: [], clock: ClockSetting(bootTime: 0))
      })
    return queue
  }

  @Test("what can't have left is released, what may have left stays, in its place") func releases() {
    var queue = threeClaimed()
    queue.began(Self.ids[0])
    queue.answered(Self.ids[0], DeliveryOutcome(.cancelled, mayHaveLeft: true))
    queue.isExhausted = true
    queue.release()
    #expect(queue.entries.map(\.id) == [Self.ids[0]])
    #expect(queue.dispositions == [.released(Self.ids[1]), .released(Self.ids[2])])
    #expect(!queue.isExhausted && !queue.isDone, "their rows wait again")
  }

  @Test("a packet whose POST was not answered yet is never released, with any failure meanwhile") func onItsWay() {
    var queue = threeClaimed()
    queue.began(Self.ids[0])
    queue.release()
    #expect(queue.entries.first?.id == Self.ids[0] && queue.entries.count == 1)
    queue.answered(Self.ids[0], DeliveryOutcome(.cancelled, mayHaveLeft: false))
    queue.release()
    #expect(queue.entries.isEmpty)
  }

  @Test("what a run before left in flight may all have left") func recovered() {
    var queue = InFlightQueue()
    queue.recover(
      [PacketInFlight(id: Self.ids[0], itemCount: 1)], lastAccepted: Self.ids[3])
    queue.release()
    #expect(queue.entries.first?.id == Self.ids[0] && queue.lastAccepted == Self.ids[3] && queue.dispositions.isEmpty)
  }

  @Test("half of a packet is not released while a packet behind it may have left: order holds")
  func halfBeforeFrozen() {
    var queue = InFlightQueue()
    let inFlight = [Self.ids[0], Self.ids[1]].map { PacketInFlight(id: $0, itemCount: 2) }
    queue.recover(inFlight, lastAccepted: nil)
    let disposition = Disposition.split(Self.ids[0], first: Self.ids[2], second: Self.ids[3])
    queue.split(Self.ids[0], disposition, first: Self.ids[2], second: Self.ids[3])
    queue.committed(1)
    queue.release()
    #expect(queue.entries.map(\.id) == [Self.ids[2], Self.ids[3], Self.ids[1]] && queue.dispositions.isEmpty)
  }

  @Test("halves take the place of their whole, and are read once that is committed") func split() {
    var queue = threeClaimed()
    queue.began(Self.ids[0])
    queue.answered(Self.ids[0], DeliveryOutcome(.cancelled, mayHaveLeft: true))
    let disposition = Disposition.split(Self.ids[0], first: Self.ids[3], second: Self.ids[0])
    queue.split(Self.ids[0], disposition, first: Self.ids[3], second: Self.ids[0])
    #expect(queue.entries.map(\.id) == [Self.ids[3], Self.ids[0], Self.ids[1], Self.ids[2]])
    #expect(queue.hasUncommittedSplit && queue.dispositions == [disposition])
    queue.committed(1)
    #expect(!queue.hasUncommittedSplit && queue.dispositions.isEmpty)
  }

  @Test("a store that failed makes it read again what is in flight; what was decided stays so") func lost() {
    var queue = threeClaimed()
    queue.began(Self.ids[0])
    queue.answered(Self.ids[0], DeliveryOutcome(.cancelled, mayHaveLeft: true))
    let receipt = Disposition.Receipt(unixMilliseconds: 0, attempts: 1, wasDuplicate: false)
    queue.settle(Self.ids[0], .delivered(Self.ids[0], receipt: receipt))
    queue.lose()
    #expect(queue.entries.isEmpty && !queue.isRecovered && !queue.isDone)
    #expect(queue.dispositions == [.delivered(Self.ids[0], receipt: receipt)] && queue.lastAccepted == Self.ids[0])
  }
}
