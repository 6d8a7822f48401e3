import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

@Suite("What becomes of a packet")
struct DeliveryDecisionTests {
  static let ids = (1...3).map { PacketID("018bcfe5-6800-7000-8000-00000000000\($0)")! }

  static func settle(_ answer: DeliveryOutcome.Verdict, items: Int = 100) -> (DeliveryDecision, idsMade: Int) {
    var made = 0
    let attempt = DeliveryDecision.Attempt(packet: ids[0], itemCount: items, attempts: 3, now: 5000)
    let result = DeliveryDecision(answer, attempt) {
      made += 1
      return ids[made]
    }
    return (result, made)
  }

  @Test("what was refused in another encoding goes again in gzip, which every receiver takes", arguments: [1, 100])
  func inGzip(items: Int) {
    let attempt = DeliveryDecision.Attempt(
      packet: Self.ids[0], itemCount: items, attempts: 1, mayNotBeTaken: true, now: 5000)
    for status in [400, 415, 422] {
      for verdict: DeliveryOutcome.Verdict in [
        .unacceptable(status: status, message: ""), .unprovenRefusal(status: status, message: ""),
      ] {
        let decision = DeliveryDecision(verdict, attempt) {
          Issue.record("no half is made")
          return Self.ids[1]
        }
        #expect(decision == .inGzip)
      }
    }
  }

  static let kept: [(DeliveryOutcome.Verdict, DeliveryDecision)] = [
    (.noReceipt(status: 200), .again(.failure, .init(cause: "no receipt", status: 200))),
    (
      .misconfigured(status: 401, code: nil, message: ""),
      .again(.held, .init(cause: "status 401, a fault of configuration", status: 401))
    ),
    (
      .misconfigured(status: 302, code: nil, message: "over there"),
      .again(.held, .init(cause: "status 302, a fault of configuration: over there", status: 302))
    ),
    (
      .misconfigured(status: 400, code: .decryptionFailed, message: ""),
      .again(.held, .init(cause: "status 400, a fault of configuration", status: 400, code: .decryptionFailed))
    ),
    (.unproven(status: 400), .confirm),
    (
      .unavailable(status: 503, cause: "status 503", retryAfter: .seconds(9)),
      .again(.failure, .init(cause: "status 503", status: 503), retryAfter: .seconds(9))
    ),
    (
      .unavailable(status: nil, cause: "tls: no", retryAfter: nil),
      .again(.failure, .init(cause: "tls: no"))
    ),
    (.cancelled, .kept),
  ]

  @Test("what may have arrived, or may yet, stays the packet that it is", arguments: kept)
  func again(answer: DeliveryOutcome.Verdict, expected: DeliveryDecision) {
    for items in [1, 100] {
      let (result, made) = Self.settle(answer, items: items)
      #expect(result == expected && made == 0)
    }
  }

  @Test("an acceptance settles it, as a duplicate too", arguments: [false, true]) func accepted(wasDuplicate: Bool) {
    let receipt = Disposition.Receipt(unixMilliseconds: 5000, attempts: 3, wasDuplicate: wasDuplicate)
    let (result, _) = Self.settle(.accepted(wasDuplicate: wasDuplicate))
    #expect(result == .settled(.delivered(Self.ids[0], receipt: receipt)))
  }

  static let rejections: [(DeliveryOutcome.Verdict, status: Int)] = [
    (.tooLarge(status: 413, message: "m"), 413), (.unacceptable(status: 400, message: "m"), 400),
    (.unacceptable(status: 415, message: "m"), 415), (.unacceptable(status: 422, message: "m"), 422),
  ]

  @Test("a rejection halves it under two new ids; of a single row it makes a dead letter", arguments: rejections)
  func halved(answer: DeliveryOutcome.Verdict, status: Int) {
    for items in [2, 3, 100] {
      let split = DeliveryDecision.split(
        .split(Self.ids[0], first: Self.ids[1], second: Self.ids[2]), first: Self.ids[1], second: Self.ids[2])
      #expect(Self.settle(answer, items: items).0 == split)
    }
    let cause = Disposition.DeadCause(status: status, message: "m", unixMilliseconds: 5000, attempts: 3)
    #expect(Self.settle(answer, items: 1) == (.settled(.dead(Self.ids[0], cause: cause)), 0))
  }

  static let unprovenCause = "without the collector's proof: a proxy answered, or an older collector"

  @Test("a refusal without a proof holds the packet as it is; 413 halves it down to one row", arguments: [1, 2, 100])
  func unproven(items: Int) {
    for status in [400, 410, 413, 415, 422] {
      let (result, made) = Self.settle(.unprovenRefusal(status: status, message: "m"), items: items)
      let problem = DeliveryDecision.Problem(cause: "status \(status) \(Self.unprovenCause): m", status: status)
      if status == 413, items > 1 {
        #expect(made == 2)
      } else {
        #expect(result == .again(.held, problem) && made == 0)
      }
    }
  }

  @Test(
    "413 without a proof: no halves of what may have been taken, and one report may wait while others go on",
    arguments: [(1, false), (1, true), (2, false), (2, true), (100, true)])
  func limitOnTheWay(items: Int, maySetBack: Bool) {
    for mayBeTaken in [false, true] {
      let attempt = DeliveryDecision.Attempt(
        packet: Self.ids[0], itemCount: items, attempts: 2, mayBeTaken: mayBeTaken, maySetBack: maySetBack, now: 5000)
      let decision = DeliveryDecision(.unprovenRefusal(status: 413, message: ""), attempt) { Self.ids[1] }
      switch decision {
      case .again(.held, let problem, _):
        #expect(mayBeTaken || items == 1 && !maySetBack)
        #expect(problem.cause.contains("may have been taken before") == mayBeTaken)
      case .split: #expect(!mayBeTaken && items > 1)
      case .setBack(let disposition, _):
        #expect(!mayBeTaken && items == 1 && maySetBack && disposition == .setBack(Self.ids[0]))
      default: Issue.record("\(decision)")
      }
    }
  }

  @Test(
    "an attempt leaves doubt only if the packet left whole and nothing says that it was not taken",
    arguments: [
      (.unavailable(status: 504, cause: "", retryAfter: nil), true), (.noReceipt(status: 200), true),
      (.unprovenRefusal(status: 413, message: ""), false), (.unproven(status: 413), false),
      (.unprovenRefusal(status: 400, message: ""), true), (.tooLarge(status: 413, message: ""), false),
      (.unacceptable(status: 422, message: ""), false), (.misconfigured(status: 404, code: nil, message: ""), true),
      (.cancelled, true),
    ] as [(DeliveryOutcome.Verdict, Bool)])
  func doubt(verdict: DeliveryOutcome.Verdict, isLeft: Bool) {
    #expect(DeliveryOutcome(verdict, mayHaveLeft: true, bytesSent: 1500).leavesDoubt(bodyBytes: 1000) == isLeft)
    #expect(!DeliveryOutcome(verdict, mayHaveLeft: true, bytesSent: 999).leavesDoubt(bodyBytes: 1000), "not whole")
    #expect(!DeliveryOutcome(verdict, mayHaveLeft: false).leavesDoubt(bodyBytes: 0))
  }

  @Test("what the collector may have had and forgotten becomes dead letters, whole") func tooOld() {
    let cause = Disposition.DeadCause(status: 410, message: "m", unixMilliseconds: 5000, attempts: 3)
    let (result, made) = Self.settle(.tooOld(message: "m"), items: 100)
    #expect(result == .settled(.dead(Self.ids[0], cause: cause)) && made == 0)
  }

  /// The receiver keeps ids for 30 days: a younger packet with an older id was made by a clock that was behind.
  @Test(
    "a packet that is younger than its id was never stored: its rows go under another id",
    arguments: [
      (.uptime(.zero), 30, true), (.uptime(.zero), 20_000, true), (.uptime(.seconds(-28 * 86_400)), 30, true),
      (.uptime(.seconds(-29 * 86_400)), 40, false), (.uptime(.zero), 28, false), (.uptime(.zero), -400, false),
      (nil, 40, false), (.unixMilliseconds(40 * 86_400_000 - 5000), 40, true),
      (.unixMilliseconds(10 * 86_400_000), 40, false),
    ] as [(claimed: ClaimTime?, aheadDays: Int64, isRemade: Bool)])
  func behind(claimed: ClaimTime?, aheadDays: Int64, isRemade: Bool) {
    let id = PacketID("019b7700-0000-7000-8000-000000000001")!
    let claimedAt: ClaimTime? =
      if case .unixMilliseconds(let after) = claimed { .unixMilliseconds(id.unixMilliseconds + after) } else { claimed }
    let attempt = DeliveryDecision.Attempt(packet: id, itemCount: 3, attempts: 2, claimedAt: claimedAt, now: 5000)
    let time = id.unixMilliseconds + aheadDays * 86_400_000
    let decision = DeliveryDecision(.tooOld(message: "m", receiverTime: time), attempt) { Self.ids[1] }
    let cause = Disposition.DeadCause(status: 410, message: "m", unixMilliseconds: 5000, attempts: 2)
    #expect(decision == (isRemade ? .remade : .settled(.dead(id, cause: cause))))
  }

  @Test("a packet of a time before prism was made has the id of a clock that was behind, in any boot")
  func before() {
    let attempt = DeliveryDecision.Attempt(packet: Self.ids[0], itemCount: 3, attempts: 2, now: 5000)
    let time = Self.ids[0].unixMilliseconds + 400 * 86_400_000
    #expect(DeliveryDecision(.tooOld(message: "m", receiverTime: time), attempt) { Self.ids[1] } == .remade)
  }
}
