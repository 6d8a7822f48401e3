public import PrismProtocol

/// Counts the deliveries since the daemon started, of one namespace and kind.
public struct EngineCounters: Sendable, Equatable {
  /// The result of an attempt; the raw value is a metric's label.
  public enum Result: String, Sendable, CaseIterable {
    case accepted, duplicate
    case noReceipt = "no_receipt"
    case tooLarge = "too_large"
    case tooOld = "too_old"
    case outOfOrder = "out_of_order"
    case unknownDictionary = "unknown_dictionary"
    case unacceptable, misconfigured, unproven, unavailable, cancelled, carried
  }

  /// Packets by result.
  public private(set) var packets: [Result: Int] = [:]
  /// Attempts after a packet's first.
  public private(set) var retries = 0
  /// Bytes before compression, after it, and on the wire in both directions.
  public private(set) var bytesRaw = 0, bytesPacked = 0, bytesSent = 0, bytesReceived = 0
  /// Seconds, 1 ms to 65 s.
  public private(set) var postDuration = Histogram(from: 0.001, doublings: 16)

  mutating func built(rawBytes: Int, packedBytes: Int) {
    bytesRaw += rawBytes
    bytesPacked += packedBytes
  }

  mutating func answered(_ outcome: DeliveryOutcome, attempt: Int) {
    packets[outcome.verdict.counter, default: 0] += 1
    if outcome.verdict == .carried { return }
    if attempt > 1 { retries += 1 }
    bytesSent += outcome.bytesSent
    bytesReceived += outcome.bytesReceived
    postDuration.record(outcome.duration / .seconds(1))
  }
}

extension DeliveryOutcome.Verdict {
  var counter: EngineCounters.Result {
    switch self {
    case .accepted(let wasDuplicate): wasDuplicate ? .duplicate : .accepted
    case .noReceipt: .noReceipt
    case .tooLarge: .tooLarge
    case .tooOld: .tooOld
    case .outOfOrder: .outOfOrder
    case .unacceptable: .unacceptable
    case .misconfigured: .misconfigured
    case .unknownDictionary: .unknownDictionary
    case .unproven, .unprovenRefusal: .unproven
    case .unavailable: .unavailable
    case .cancelled: .cancelled
    case .carried: .carried
    }
  }
}

/// Commits of reports since the daemon started.
public struct CommitCounters: Sendable, Equatable {
  /// Seconds, 0.5 ms to 16 s: from handing the batches over to the store's answer, which is what a reporter waits for.
  public private(set) var duration = Histogram(from: 0.0005, doublings: 15)
  /// Reports of one commit.
  public private(set) var rows = Histogram(from: 1, doublings: 12)
  /// Commits that failed.
  public private(set) var failures = 0

  mutating func committed(rows count: Int, in duration: Duration) {
    self.duration.record(duration / .seconds(1))
    rows.record(Double(count))
  }

  mutating func failed() { failures += 1 }
}
