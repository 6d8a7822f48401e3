import Synchronization

/// Whether the sender of a request has its answer. A request that comes again is a repetition only if the answer to the first
/// one is lost; else it is a new request with equal content.
public final class AnswerReceipt: Sendable {
  /// The state of the answer, as far as it is known.
  public enum State: Sendable {
    /// The connection is open, and the answer may still arrive.
    case open
    /// The sender went on after the answer, or ended the connection in order.
    case received
    /// The connection ended before, or the answer asked the sender to try again.
    case lost
  }

  private struct Held {
    var state = State.open
    var isAnswered = false
    var isLost: (@Sendable (_ isAnswered: Bool) -> Bool)?
  }

  private let held: Mutex<Held>

  /// - Parameter isLost: looks at the connection while the state is open; nil: only `settle` ends the state.
  public init(isLost: (@Sendable (_ isAnswered: Bool) -> Bool)? = nil) { held = Mutex(Held(isLost: isLost)) }

  /// The state as the connection has it now.
  public var state: State {
    held.withLock { $0.state == .open && $0.isLost?($0.isAnswered) == true ? .lost : $0.state }
  }

  /// The state without a look at the connection.
  public var settledState: State { held.withLock { $0.state } }

  /// The answer is about to be written.
  public func beginAnswer() { held.withLock { $0.isAnswered = true } }

  /// Ends the open state. The first call counts.
  public func settle(_ state: State) {
    held.withLock { if $0.state == .open { $0 = Held(state: state) } }
  }
}
