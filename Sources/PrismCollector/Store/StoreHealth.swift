import PrismBase
import Synchronization

/// How a store is, for `/readyz`, the metrics and the log. Never waits.
final class StoreHealth: Sendable {
  private struct State {
    var failure: String?
    var warnings: [String] = []
    var counts = StoreCounts()
  }

  private static let source = "collector.store"

  private let state = Mutex(State())
  private let log: Logger

  init(_ log: Logger) { self.log = log }

  var failure: String? { state.withLock { $0.failure } }
  var warnings: [String] { state.withLock { $0.warnings } }
  var counts: StoreCounts { state.withLock { $0.counts } }

  /// - Parameter fault: for the log; nil: nothing new is logged.
  func fails(_ cause: String, _ fault: String? = nil) {
    state.withLock { $0.failure = cause }
    if let fault { log.fault(Self.source, fault, ["cause": cause], level: .error) }
  }

  /// It does what it was asked again.
  func succeeds(_ end: String) {
    guard failure != nil else { return }
    state.withLock { $0.failure = nil }
    log.faultEnded(Self.source, end)
  }

  func warn(_ warnings: [String]) { state.withLock { $0.warnings = warnings } }
  func count(_ body: (inout StoreCounts) -> Void) { state.withLock { body(&$0.counts) } }
}
