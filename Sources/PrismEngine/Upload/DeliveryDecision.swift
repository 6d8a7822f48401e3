import PrismProtocol
import PrismStore

/// The decision on a packet after an attempt (docs/delivery.md, "Delivery decision").
enum DeliveryDecision: Sendable, Equatable {
  /// It is done with: delivered, or its rows are dead letters.
  case settled(Disposition)
  /// Its rows become two packets, which go next.
  case split(Disposition, first: PacketID, second: PacketID)
  /// Its one report waits, and the others go on.
  case setBack(Disposition, Problem)
  /// The same packet again, after a pause.
  case again(UploadState.Pause.Reason, Problem, retryAfter: Duration? = nil)
  /// Its rows go at once under another id, of the receiver's time.
  case remade
  /// The same packet at once, on a new connection.
  case confirm
  /// The same packet, once the one before it has its receipt. - Parameter isOverload: fewer at a time would be better.
  case afterPredecessor(isOverload: Bool)
  /// The same packet at once, packed without the dictionary.
  case withoutDictionary
  /// The same packet at once, in gzip, which every receiver takes.
  case inGzip
  /// As it is, for the next start.
  case kept
  /// As it is, until its receipt is brought back or the carrying ends.
  case carried

  /// The fault of an attempt, for people and for advice.
  struct Problem: Sendable, Equatable {
    var cause: String
    /// nil where no whole answer came.
    var status: Int?
    var code: PacketRefusal?
  }

  struct Attempt: Sendable {
    var packet: PacketID
    var itemCount: Int
    /// This one counted.
    var attempts: Int
    /// A packet before it had no receipt when the attempt began.
    var isPending = false
    /// It left in an encoding that this receiver need not take.
    var mayNotBeTaken = false
    var hasDictionary = false
    /// An earlier attempt may have brought it to the receiver: only a verdict of that one ends its id.
    var mayBeTaken = false
    /// A report that something on the way does not let through may wait while others go on.
    var maySetBack = false
    /// nil: under a clock of which is not known whether it was right.
    var claimedAt: ClaimTime?
    var uptime: Duration = .zero
    /// Milliseconds since 1970.
    var now: Int64

    /// A receiver keeps ids for a day more.
    private static let idMilliseconds: Int64 = 29 * 86_400_000
    /// 2026-01-01: no prism made a packet before.
    private static let firstMilliseconds: Int64 = 1_767_225_600_000

    /// The packet is younger than its id, by the receiver's clock: this side's clock was behind, and the receiver, which
    /// takes no id that is older, never had it. It is a packet's own time that says so, through restarts and boots.
    func isYounger(thanIDAt receiverTime: Int64) -> Bool {
      let oldest = receiverTime - Self.idMilliseconds
      guard packet.unixMilliseconds < oldest else { return false }
      if packet.unixMilliseconds < Self.firstMilliseconds { return true }
      switch claimedAt {
      case .uptime(let claimed): return uptime - claimed < .milliseconds(Self.idMilliseconds)
      case .unixMilliseconds(let claimed): return claimed > oldest
      case nil: return false
      }
    }
  }

  /// - Parameter newID: makes the ids of halves.
  init(_ verdict: DeliveryOutcome.Verdict, _ attempt: Attempt, newID: () -> PacketID) {
    switch verdict {
    case .accepted(let wasDuplicate):
      let receipt = Disposition.Receipt(
        unixMilliseconds: attempt.now, attempts: attempt.attempts, wasDuplicate: wasDuplicate)
      self = .settled(.delivered(attempt.packet, receipt: receipt))
    case .noReceipt(let status): self = .again(.failure, Problem(cause: "no receipt", status: status))
    case .unacceptable(status: 415, _) where attempt.hasDictionary,
      .unprovenRefusal(status: 415, _) where attempt.hasDictionary:
      self = .withoutDictionary
    // Another receiver may have answered, which takes less.
    case .unacceptable where attempt.mayNotBeTaken: self = .inGzip
    case .unprovenRefusal(let status, _) where attempt.mayNotBeTaken && [400, 415, 422].contains(status):
      self = .inGzip
    case .unprovenRefusal(status: 413, let message) where attempt.mayBeTaken:
      var problem = Self.unproven(413, message)
      problem.cause += "; the packet may have been taken before, so it is not split: raise the proxy's limit of bodies"
      self = .again(.held, problem)
    // A limit on the way: halves may pass it.
    case .unprovenRefusal(status: 413, let message) where attempt.itemCount > 1:
      self = Self.halve(attempt, status: 413, message, newID)
    case .unprovenRefusal(status: 413, let message) where attempt.maySetBack:
      self = .setBack(.setBack(attempt.packet), Self.unproven(413, message))
    case .unprovenRefusal(let status, let message): self = .again(.held, Self.unproven(status, message))
    case .tooLarge(let status, let message), .unacceptable(let status, let message):
      self = Self.halve(attempt, status: status, message, newID)
    // The answer to its predecessor decides.
    case .tooOld where attempt.isPending: self = .afterPredecessor(isOverload: false)
    case .tooOld(_, let time?) where attempt.isYounger(thanIDAt: time): self = .remade
    case .tooOld(let message, _): self = .settled(Self.dead(attempt, status: 410, message))
    case .outOfOrder(let status, _, _) where attempt.isPending: self = .afterPredecessor(isOverload: status == 425)
    case .outOfOrder(let status, let cause, let retryAfter):
      self = .again(.failure, Problem(cause: cause, status: status), retryAfter: retryAfter)
    case .misconfigured(let status, let code, let message):
      let cause = "status \(status), a fault of configuration" + (message.isEmpty ? "" : ": \(message)")
      self = .again(.held, Problem(cause: cause, status: status, code: code))
    case .unavailable(let status, let cause, let retryAfter):
      self = .again(.failure, Problem(cause: cause, status: status), retryAfter: retryAfter)
    case .unproven: self = .confirm
    case .unknownDictionary: self = .withoutDictionary
    case .cancelled: self = .kept
    case .carried: self = .carried
    }
  }

  private static func unproven(_ status: Int, _ message: String) -> Problem {
    let cause = "status \(status) without the collector's proof: a proxy answered, or an older collector"
    return Problem(cause: cause + (message.isEmpty ? "" : ": \(message)"), status: status)
  }

  private static func halve(
    _ attempt: Attempt, status: Int, _ message: String, _ newID: () -> PacketID
  ) -> DeliveryDecision {
    guard attempt.itemCount > 1 else { return .settled(dead(attempt, status: status, message)) }
    let (first, second) = (newID(), newID())
    return .split(.split(attempt.packet, first: first, second: second), first: first, second: second)
  }

  private static func dead(_ attempt: Attempt, status: Int, _ message: String) -> Disposition {
    .dead(
      attempt.packet,
      cause: Disposition.DeadCause(
        status: status, message: message, unixMilliseconds: attempt.now, attempts: attempt.attempts))
  }
}
