import PrismControl
import PrismProtocol

/// The data of `prismctl top`: the newest status, and the rates of the five minutes before it.
struct TopHistory {
  static let secondsKept = 300

  struct Rates: Equatable {
    /// Reports a second: stored, delivered; bytes a second to the collector.
    var stored = 0.0, delivered = 0.0, sentBytes = 0.0
    /// The newest last.
    var storedBefore: [Double] = []
  }

  private(set) var status: StatusReport?
  private(set) var rates: [String: Rates] = [:]
  private var time: Double?

  /// - Parameter now: seconds on any clock that does not go back.
  mutating func add(_ status: StatusReport, now: Double) {
    let seconds = time.map { now - $0 } ?? 0
    var next: [String: Rates] = [:]
    let before = self.status.map { Dictionary($0.namespaces.map { ($0.name, $0.value) }) { $1 } } ?? [:]
    for namespace in status.namespaces {
      next[namespace.name] = rates[namespace.name]
      guard let old = before[namespace.name], seconds > 0 else { continue }
      /// A daemon that was restarted counts its bytes from 0 again: that is no negative rate.
      func rate(_ figure: (NamespaceReport) -> Int) -> Double {
        Double(max(0, figure(namespace.value) - figure(old))) / seconds
      }
      // A report is counted once, by its meta row.
      let stored = rate { $0.meta.ledger.stored }
      next[namespace.name] = Rates(
        stored: stored, delivered: rate { $0.meta.ledger[.delivered] },
        sentBytes: rate { $0.meta.bytesSent + $0.payload.bytesSent },
        storedBefore: ((rates[namespace.name]?.storedBefore ?? []) + [stored]).suffix(Self.secondsKept))
    }
    (self.status, rates, time) = (status, next, now)
  }
}
