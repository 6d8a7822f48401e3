public import PrismProtocol

/// What the ingest socket has seen since the daemon started; for status and metrics.
public struct IngestTally: Sendable, Equatable {
  /// Reports that came, refused ones included.
  public var received = 0
  /// Reports answered `stored`, duplicates included.
  public var stored = 0
  public var refused: [RefusalCode: Int] = [:]

  public init() {}

  public mutating func add(_ other: IngestTally) {
    received += other.received
    stored += other.stored
    refused.merge(other.refused, uniquingKeysWith: +)
  }

  mutating func count(_ refusals: [Refusal]) {
    for refusal in refusals { refused[refusal.code, default: 0] += 1 }
  }
}
