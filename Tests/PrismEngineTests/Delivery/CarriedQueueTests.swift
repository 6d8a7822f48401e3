import PrismBase
import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

/// Packets in files (docs/carrying.md), in the queue of packets in flight.
@Suite struct CarriedQueueTests {
  private static func id(_ number: Int) -> PacketID {
    let digits = String(number, radix: 16)
    return PacketID("018bcfe5-6800-7000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits)!
  }

  /// With `count` packets in files.
  private static func carrying(_ count: Int) -> InFlightQueue {
    var queue = InFlightQueue()
    queue.recover((0..<count).map { PacketInFlight(id: id($0), itemCount: 2) }, lastAccepted: nil)
    _ = carry(&queue, .begins)
    for number in 0..<count {
      queue.began(id(number))
      queue.answered(id(number), DeliveryOutcome(.cancelled, mayHaveLeft: true))
      queue.carried(id(number))
    }
    return queue
  }

  private static func carry(_ queue: inout InFlightQueue, _ event: CarryEvent) -> Disposition? {
    var conditions = DeliveryTable().conditions
    conditions.instant = Instant(uptime: .zero, unixMilliseconds: 1)
    return queue.carry(event, conditions)
  }

  private static func returned(_ number: Int, _ verdict: DeliveryOutcome.Verdict) -> CarryEvent {
    .returned(id(number), DeliveryOutcome(verdict, mayHaveLeft: true))
  }

  @Test("a carried packet is not sent, is never released, and may be sent again when the carrying ends")
  func stays() {
    var queue = Self.carrying(2)
    #expect(queue.next == nil && queue.wantsMore(hasPosted: false, flowRestBytes: nil))
    queue.rest()
    queue.release()
    #expect(queue.entries.count == 2 && queue.dispositions.isEmpty)
    _ = Self.carry(&queue, .ends)
    #expect(queue.next?.id == Self.id(0))
  }

  @Test("a packet whose reader left when the carrying was over may be sent")
  func late() {
    var queue = Self.carrying(1)
    queue.began(Self.id(0))
    _ = Self.carry(&queue, .ends)
    queue.answered(Self.id(0), DeliveryOutcome(.cancelled, mayHaveLeft: true))
    queue.carried(Self.id(0))
    #expect(queue.next?.id == Self.id(0))
  }

  @Test("4,096 packets are out at most", arguments: [(4095, false), (4096, true)])
  func full(count: Int, isFull: Bool) {
    let queue = Self.carrying(count)
    #expect(queue.isCarryFull == isFull && queue.hasCarriedAll == isFull)
    #expect(queue.wantsMore(hasPosted: true, flowRestBytes: nil) != isFull)
  }

  @Test("receipts come back in any order, and settle in the order of the chain, once each")
  func anyOrder() {
    var queue = Self.carrying(3)
    for number in [2, 1, 1] { _ = Self.carry(&queue, Self.returned(number, .accepted(wasDuplicate: false))) }
    #expect(queue.dispositions.isEmpty && queue.entries.count == 3)
    _ = Self.carry(&queue, Self.returned(0, .accepted(wasDuplicate: true)))
    #expect(queue.dispositions.count == 3 && queue.entries.isEmpty && queue.lastAccepted == Self.id(2))
    #expect(Self.carry(&queue, Self.returned(0, .accepted(wasDuplicate: true))) == nil)
  }

  @Test(
    "an answer that decides nothing leaves the packet as it is",
    arguments: [
      .noReceipt(status: 200), .unprovenRefusal(status: 422, message: ""), .unproven(status: 400),
      .unavailable(status: 503, cause: "", retryAfter: nil),
      .misconfigured(status: 403, code: nil, message: ""), .outOfOrder(status: 425, cause: "", retryAfter: nil),
    ] as [DeliveryOutcome.Verdict])
  func undecided(verdict: DeliveryOutcome.Verdict) {
    var queue = Self.carrying(1)
    #expect(Self.carry(&queue, Self.returned(0, verdict)) == nil)
    #expect(queue.entries.first?.isCarried == true && queue.dispositions.isEmpty)
  }

  @Test("a packet that was refused for good is split, and its halves keep their rows when an attempt fails")
  func split() {
    var queue = Self.carrying(1)
    let decided = Self.carry(&queue, Self.returned(0, .unacceptable(status: 422, message: "no")))
    guard case .split = decided else {
      Issue.record("it is \(String(describing: decided))")
      return
    }
    #expect(queue.entries.count == 2 && queue.isSplitting)
    let splits = queue.dispositions.count
    queue.release()
    #expect(queue.entries.count == 2 && queue.dispositions.count == splits)
  }
}
