import PrismProtocol
import PrismStore

/// What becomes of a packet after an attempt (docs/delivery.md, "Settling").
enum Settling: Sendable, Equatable {
  /// It is done with: delivered, or its rows are dead letters.
  case settled(Settlement)
  /// Its rows become two packets, which go next.
  case split(Settlement, first: PacketID, second: PacketID)
  /// The same packet again, after a pause.
  case again(UploadState.Pause.Reason, Problem, retryAfter: Duration? = nil)
  /// The same packet at once, on a new connection.
  case confirm
  /// As it is, for the next start.
  case kept

  /// What went wrong, for people and for what advises them.
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
    /// Milliseconds since 1970.
    var now: Int64
  }

  /// - Parameter newID: makes the ids of halves.
  init(_ answer: AnswerClass, _ attempt: Attempt, newID: () -> PacketID) {
    switch answer {
    case .accepted(let wasDuplicate):
      let receipt = Settlement.Receipt(
        unixMilliseconds: attempt.now, attempts: attempt.attempts, wasDuplicate: wasDuplicate)
      self = .settled(.delivered(attempt.packet, receipt: receipt))
    case .noReceipt(let status): self = .again(.failure, Problem(cause: "no receipt", status: status))
    case .tooLarge(let message): self = Self.halve(attempt, status: 413, message, newID)
    case .unacceptable(let status, let message): self = Self.halve(attempt, status: status, message, newID)
    case .misconfigured(let status, let code, let message):
      let cause = "status \(status), a fault of configuration" + (message.isEmpty ? "" : ": \(message)")
      self = .again(.held, Problem(cause: cause, status: status, code: code))
    case .unavailable(let status, let cause, let retryAfter):
      self = .again(.failure, Problem(cause: cause, status: status), retryAfter: retryAfter)
    case .unproven: self = .confirm
    case .cancelled: self = .kept
    }
  }

  private static func halve(
    _ attempt: Attempt, status: Int, _ message: String, _ newID: () -> PacketID
  ) -> Settling {
    guard attempt.itemCount > 1 else {
      let cause = Settlement.DeadCause(
        status: status, message: message, unixMilliseconds: attempt.now, attempts: attempt.attempts)
      return .settled(.dead(attempt.packet, cause: cause))
    }
    let (first, second) = (newID(), newID())
    return .split(.split(attempt.packet, first: first, second: second), first: first, second: second)
  }
}
