import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// Random walks: what is asked for is answered in any order, well or badly.
@Suite("Delivery, with any events in any order")
struct DeliveryWalkTests {
  /// The work that the actor would have under way.
  private struct World {
    var table = DeliveryTable()
    var random: SeededRandom
    var open: [Delivery.Action] = []
    var posted: [PacketID] = []
    var waiting = 0
    /// That the receiver announces; nil if it announces nothing.
    var window: Int?

    mutating func tell(_ event: Delivery.Event) {
      for action in table.delivery.handle(event, table.conditions) {
        switch action {
        case .recover, .look, .read, .commit, .build: open.append(action)
        case .post(let packet, _, _, _):
          posted.append(packet.context.packetID)
          open.append(action)
        case .rememberRetry, .accepted, .circuit, .endSetBacks, .log, .ended: break
        }
      }
    }

    mutating func answerOne() {
      let action = open.remove(at: Int.random(in: 0..<open.count, using: &random))
      if random.oneIn(12), action.isOfStore { return tell(.storeFailed) }
      switch action {
      // Packets on their way are in flight at the store, too.
      case .recover:
        let inFlight = posts.map { PacketInFlight(id: $0, itemCount: 2) }
        tell(.recovered(inFlight, lastAccepted: nil, sender: nil))
      case .look: tell(.looked(hasRows: waiting > 0))
      case .read(let id): tell(.read(id, random.oneIn(10) ? nil : claimed(id)))
      case .commit(let turn):
        let made = turn.claims.prefix(waiting)
        waiting -= made.count
        tell(.committed(made.map { claimed($0.packetID) }))
      case .build(let packets, _, _):
        tell(
          random.oneIn(15) ? .notBuilt(packets.map(\.id), "internal") : .built(packets.map { DeliveryTable.built($0) }))
      case .post(let packet, _, _, _): tell(.answered(packet.context.packetID, outcome()))
      case .rememberRetry, .accepted, .circuit, .endSetBacks, .log, .ended: break
      }
    }

    private func claimed(_ id: PacketID) -> ClaimedPacket {
      var packet = DeliveryTable.claimed(1)
      packet.id = id
      return packet
    }

    private mutating func outcome() -> DeliveryOutcome {
      let verdicts: [DeliveryOutcome.Verdict] = [
        DeliveryTable.tooLarge, DeliveryTable.unacceptable, DeliveryTable.unavailable, .noReceipt(status: 200),
        .misconfigured(status: 401, code: nil, message: ""), .unproven(status: 400),
        .unprovenRefusal(status: 422, message: ""), .unprovenRefusal(status: 413, message: ""),
      ]
      switch Int.random(in: 0..<8, using: &random) {
      case 0: return DeliveryOutcome(DeliveryTable.lost, mayHaveLeft: true)
      case 1: return DeliveryOutcome(DeliveryTable.lost, mayHaveLeft: false)
      case 2: return DeliveryOutcome(random.pick(verdicts), mayHaveLeft: true)
      case 3 where window != nil:
        let status = random.pick([409, 425])
        return DeliveryOutcome(.outOfOrder(status: status, cause: "", retryAfter: nil), mayHaveLeft: true)
      default:
        var outcome = DeliveryOutcome(.accepted(wasDuplicate: false), mayHaveLeft: true)
        outcome.receiver = ReceiverFeatures()
        outcome.receiver?.window = window ?? 1
        let times = [Duration.milliseconds(1), .milliseconds(90), .milliseconds(400)]
        outcome.line = random.oneIn(3) ? nil : LineReading(roundTrip: random.pick(times), least: random.pick(times))
        return outcome
      }
    }

    var posts: [PacketID] {
      open.compactMap { if case .post(let packet, _, _, _) = $0 { packet.context.packetID } else { nil } }
    }

    mutating func event() {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: waiting += Int.random(in: 1...20, using: &random)
      case 1: table.conditions.verdict = random.oneIn(3) ? DeliveryTable.shut : .open(.all)
      case 2:
        tell(.upload(.trigger(random.pick(UploadState.RetryTrigger.allCases), tryAt: table.conditions.instant.uptime)))
      case 3:
        let later = table.conditions.instant.uptime + .seconds(400)
        table.conditions.instant = Instant(uptime: later, unixMilliseconds: 1_700_000_000_000)
      default: tell(.upload(.wanted))
      }
    }
  }

  private final class Draws: Sendable {
    private let random: Mutex<SeededRandom>
    init(seed: UInt64) { random = Mutex(SeededRandom(seed: ~seed)) }
    func next() -> UInt64 { random.withLock { $0.next() } }
  }

  @Test(
    "no more packets than announced are on their way, each once, one thing is asked of the store, and every drain ends",
    arguments: [nil, 1, 8, 64])
  func walks(window: Int?) {
    let seed = SeededRandom.announcedSeed("delivery walks")
    for walk in 0..<300 {
      var world = World(random: SeededRandom(seed: seed &+ UInt64(walk)), window: window)
      world.table.conditions.configuration?.window = 64
      let draws = Draws(seed: seed &+ UInt64(walk))
      world.table.conditions.random = Randomness { draws.next() }
      for _ in 0..<200 {
        if world.open.isEmpty || world.random.oneIn(3) { world.event() } else { world.answerOne() }
        #expect(world.open.count { $0.isOfStore } <= 1, "seed \(seed), walk \(walk)")
        // The one that the others wait for may always go.
        #expect(world.posts.count <= (window.map { $0 == 1 ? 1 : $0 + 1 } ?? 1), "seed \(seed), walk \(walk)")
        #expect(Set(world.posts).count == world.posts.count, "seed \(seed), walk \(walk)")
        #expect(world.table.delivery.queue.sendingCount == world.posts.count, "seed \(seed), walk \(walk)")
      }
      var steps = 0
      world.tell(.upload(.stop))
      while !world.open.isEmpty && steps < 1000 {
        world.answerOne()
        steps += 1
      }
      #expect(world.table.delivery.drain == nil, "seed \(seed), walk \(walk): the drain does not end")
    }
  }
}

extension Delivery.Action {
  fileprivate var isOfStore: Bool {
    switch self {
    case .recover, .look, .read, .commit: true
    default: false
    }
  }
}
