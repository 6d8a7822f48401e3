import PrismBase
import PrismProtocol
import Synchronization

/// The server's time at one moment of the uptime clock.
struct ServerClock: Sendable, Equatable {
  /// As an answer announced it.
  let unixMilliseconds: Int64
  let uptime: Duration
  /// The uptime since which no answer stepped it.
  private(set) var steadySince: Duration

  /// A step is at least as long: an answer may be on its way for a while.
  private static let stepMin: Int64 = 60_000
  /// For as long the clock must run steadily before it alone proves a time.
  static let proofDuration: Duration = .seconds(3600)

  init(unixMilliseconds: Int64, uptime: Duration) {
    (self.unixMilliseconds, self.uptime, steadySince) = (unixMilliseconds, uptime, uptime)
  }

  func next(_ answer: ServerClock) -> ServerClock {
    var next = answer
    let (step, overflows) = answer.unixMilliseconds.subtractingReportingOverflow(now(at: answer.uptime))
    if !overflows, step.magnitude < Self.stepMin { next.steadySince = steadySince }
    return next
  }

  /// The times that it may be: what is final needs all of them. After a step the clock of this machine counts, too.
  func proven(at uptime: Duration, own: Int64) -> ClosedRange<Int64> {
    let now = now(at: uptime)
    return self.uptime - steadySince >= Self.proofDuration ? now...now : min(now, own)...max(now, own)
  }

  func now(at uptime: Duration) -> Int64 {
    let (time, overflows) = unixMilliseconds.addingReportingOverflow((uptime - self.uptime).wholeMilliseconds)
    return overflows ? .max : time
  }
}

/// The servers' clocks, by the last answer to a question for records of each namespace. This machine's own clock may be wrong,
/// or not set yet.
final class ServerClocks: Sendable {
  private struct State {
    var clocks: [NamespaceName: ServerClock] = [:]
    var announced: Set<NamespaceName> = []
    /// Something waits for a proof of the time.
    var waiting: Set<NamespaceName> = []
    var observer: (@Sendable (NamespaceName) -> Void)?
  }

  private let state = Mutex(State())

  subscript(namespace: NamespaceName) -> ServerClock? { state.withLock { $0.clocks[namespace] } }

  /// - Parameter clock: of an answer that is proven to be the server's.
  func note(_ clock: ServerClock, of namespace: NamespaceName) {
    state.withLock { $0.clocks[namespace] = $0.clocks[namespace]?.next(clock) ?? clock }
  }

  /// The observer gets the next answer, too.
  func waitForProof(_ namespace: NamespaceName) { state.withLock { _ = $0.waiting.insert(namespace) } }

  /// - Parameter observer: called for each namespace after its first answer was executed, and after each that is waited for.
  func observe(_ observer: @escaping @Sendable (NamespaceName) -> Void) { state.withLock { $0.observer = observer } }

  func tellOfAnswer(_ namespace: NamespaceName) {
    let observer = state.withLock { state in
      let isFirst = state.announced.insert(namespace).inserted
      return state.waiting.remove(namespace) != nil || isFirst ? state.observer : nil
    }
    observer?(namespace)
  }
}
