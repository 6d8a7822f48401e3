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

  private struct Totals {
    var stored = 0, delivered = 0, sentBytes = 0
  }

  private(set) var status: StatusReport?
  private(set) var rates: [String: Rates] = [:]
  private var totals: [String: Totals] = [:]
  private var time: Double?

  /// - Parameter now: seconds on any clock that does not go back.
  mutating func add(_ status: StatusReport, now: Double) {
    let seconds = time.map { now - $0 } ?? 0
    var next: [String: Totals] = [:]
    for namespace in status.namespaces {
      let (name, new) = (namespace.name, Self.totals(namespace.value))
      next[name] = new
      guard let old = totals[name], seconds > 0 else { continue }
      rates[name, default: Rates()].take(
        stored: new.stored - old.stored, delivered: new.delivered - old.delivered,
        sentBytes: new.sentBytes - old.sentBytes, in: seconds)
    }
    rates = rates.filter { next[$0.key] != nil }
    (self.status, totals, time) = (status, next, now)
  }

  /// A report is counted once, by its meta row.
  private static func totals(_ namespace: NamespaceReport) -> Totals {
    let ledger = namespace.meta.ledger
    return Totals(
      stored: ledger.stored, delivered: ledger[.delivered],
      sentBytes: namespace.meta.bytesSent + namespace.payload.bytesSent)
  }
}

extension TopHistory.Rates {
  /// A daemon that was restarted counts its bytes from 0 again: that is no negative rate.
  fileprivate mutating func take(stored: Int, delivered: Int, sentBytes: Int, in seconds: Double) {
    func rate(_ count: Int) -> Double { Double(max(0, count)) / seconds }
    (self.stored, self.delivered, self.sentBytes) = (rate(stored), rate(delivered), rate(sentBytes))
    storedBefore = (storedBefore + [self.stored]).suffix(TopHistory.secondsKept)
  }
}
