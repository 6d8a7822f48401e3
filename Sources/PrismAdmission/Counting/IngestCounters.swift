public import PrismProtocol

/// Counters of the inputs since the daemon started, and their present state; for status and metrics.
public struct IngestCounters: Sendable, Equatable {
  /// Why a connection was answered `busy` and closed at once; the raw value is a metric's label.
  public enum Refusal: String, Sendable, CaseIterable {
    /// `ingest.maxConnections`, or what the limit of open files leaves of it.
    case connections
    /// `ingest.maxConnectionsPerUser`.
    case user
    /// The last places are kept for users with few connections.
    case reserved
    /// No descriptor was left.
    case descriptors
    /// The kernel does not know whose the other end of a TCP connection is: it was closed at once.
    case unknownUser = "unknown_user"
  }

  /// Why a connection was closed before its client closed it; the raw value is a metric's label.
  public enum Closure: String, Sendable, CaseIterable {
    /// A request stopped in its middle.
    case stalled
    /// The client did not read its answers.
    case unread
    /// The daemon stopped.
    case stopped
  }

  /// The kind of a request of another input, and its answer.
  public struct InputResult: Sendable, Hashable {
    /// `otlp_logs`, `otlp_traces`, `otlp_metrics`, `forward`.
    public var input: String
    /// The status of the answer.
    public var status: Int

    /// - Parameter input: of a small, fixed number of names. - Parameter status: of the answer.
    public init(input: String, status: Int) { (self.input, self.status) = (input, status) }
  }

  /// The fate of samples and messages of an input without answers.
  public struct Message: Sendable, Hashable {
    /// The raw value is a metric's label.
    public enum Outcome: String, Sendable, CaseIterable {
      case stored, refused
      /// A line that is no sample.
      case malformed
      /// DogStatsD's events and service checks, which are not taken.
      case event
      case serviceCheck = "service_check"
      /// Messages that were taken without their end.
      case cut
      /// Datagrams that the kernel dropped: the socket had no room.
      case dropped
    }
    /// `statsd` or `syslog`.
    public var input: String
    /// Their fate.
    public var outcome: Outcome
    /// Those of `input` that met `outcome`.
    public init(input: String, outcome: Outcome) { (self.input, self.outcome) = (input, outcome) }
  }

  /// Open now.
  public var connections = 0
  /// Connections that were accepted.
  public var acceptedConnections = 0
  /// Connections that were answered `busy` and closed at once.
  public var refusedConnections: [Refusal: Int] = [:]
  /// Connections that the daemon closed.
  public var closedConnections: [Closure: Int] = [:]
  /// Reports of all inputs.
  public var tally = IngestTally()
  /// Bytes that clients make the daemon hold now: requests, reports before their commit, answers.
  public var memoryBytes = 0
  /// The limit of `memoryBytes` (`ingest.memoryMByte`).
  public var memoryBytesMax = 0
  /// Requests of other inputs that came whole, by input and status of the answer; for a message 200 or 400.
  public var inputRequests: [InputResult: Int] = [:]
  /// Samples and messages of inputs without answers; of `dropped` datagrams.
  public var messages: [Message: Int] = [:]
  /// Connections whose client spoke a protocol that is not taken where it came.
  public var foreignProtocols: [ForeignProtocol: Int] = [:]
  /// How often a connection or a group waited because its user's share of the memory was used up.
  public var memoryPauses = 0
  /// How often a connection was not read from because its client did not read its answers.
  public var answerPauses = 0

  /// All zero.
  public init() {}

  /// Counts samples and messages of `input`.
  public mutating func add(_ outcomes: [Message.Outcome: Int], of input: String) {
    for (outcome, number) in outcomes where number > 0 {
      messages[.init(input: input, outcome: outcome), default: 0] += number
    }
  }
}

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

  /// Counts reports that came and were refused at once.
  public mutating func refuse(_ refusal: Refusal, count: Int = 1) {
    received += count
    refused[refusal.code, default: 0] += count
  }

  mutating func count(_ refusals: [Refusal]) {
    for refusal in refusals { refused[refusal.code, default: 0] += 1 }
  }
}
