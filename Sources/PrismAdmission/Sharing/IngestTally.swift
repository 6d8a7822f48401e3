public import PrismProtocol

/// Reports that came to the inputs since the daemon started; for status and metrics.
public struct IngestTally: Sendable, Equatable {
  /// Reports that came, refused ones included.
  public var received = 0
  /// Reports answered `stored`, duplicates included.
  public var stored = 0
  /// Reports whose id was known: they came again, and are stored once.
  public var repeated = 0
  /// Reports that the `sample` of their type left out.
  public var sampled = 0
  /// Reports that were taken without their payload, which was too large (`onLargePayload`).
  public var leftOutPayloads = 0
  /// Reports that became the type `other`, because their own is no name, or one too many.
  public var otherTypes = 0
  /// Refused reports by code.
  public var refused: [RefusalCode: Int] = [:]

  /// All zero.
  public init() {}

  /// Adds the counts of `other`.
  public mutating func add(_ other: IngestTally) {
    received += other.received
    stored += other.stored
    repeated += other.repeated
    sampled += other.sampled
    leftOutPayloads += other.leftOutPayloads
    otherTypes += other.otherTypes
    if !other.refused.isEmpty { refused.merge(other.refused, uniquingKeysWith: +) }
  }

  /// Counts a report that came and was refused at once.
  public mutating func refuse(_ refusal: Refusal) {
    received += 1
    count([refusal])
  }

  mutating func count(_ refusals: [Refusal]) {
    for refusal in refusals { refused[refusal.code, default: 0] += 1 }
  }
}
