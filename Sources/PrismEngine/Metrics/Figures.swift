public import PrismProtocol
public import PrismStore

/// Figures of the daemon's process. A figure that can't be read is 0.
public struct ProcessFigures: Sendable, Equatable {
  /// Resident memory and the address space.
  public var residentBytes = 0, virtualBytes = 0
  /// Time on a processor, user and system.
  public var cpuSeconds = 0.0
  /// Open descriptors and their limit.
  public var openDescriptors = 0, descriptorsMax = 0
  /// Threads of the process.
  public var threads = 0
  /// Since 1970.
  public var startSeconds = 0.0

  public init() {}
}

/// The state of remote configuration, for metrics; all 0 while it is off.
public struct RemoteFigures: Sendable, Equatable {
  /// The result of a question, or of its answer; the raw value is a metric's label.
  public enum Result: String, Sendable, CaseIterable {
    case applied, unchanged, refused, unreadable, failed
    case takenBack = "taken_back"
  }

  /// Since the daemon started.
  public internal(set) var results: [Result: Int] = [:]
  /// The number of what is in force.
  public internal(set) var number: Int64 = 0
  /// Namespaces with remote configuration, and those on probation.
  public internal(set) var namespaces = 0, onProbation = 0
  /// Of the last answer that was taken, since 1970, through restarts.
  public internal(set) var lastAnswerMilliseconds: Int64 = 0
  /// Whether the last offer is refused or was taken back.
  public internal(set) var isRefused = false

  public init() {}
}

/// Counts the ends of commands since the daemon started, for metrics.
public struct CommandCounts: Sendable, Equatable {
  /// By namespace and result: `done`, `failed`, `interrupted`, `expired` and the reasons of refusals.
  public private(set) var ends: [NamespaceName: [String: Int]] = [:]

  /// All labels.
  static let results = [
    "done", "failed", "interrupted", "expired", "unreadable", "not_allowed", "arguments", "unsigned", "signature",
    "changed", "replayed", "too_many", "over_budget",
  ]

  public init() {}

  mutating func add(_ result: String, _ namespace: NamespaceName) {
    ends[namespace, default: [:]][result, default: 0] += 1
  }
}

/// The content of the store, read on its queue.
public struct StoreFigures: Sendable {
  /// The queue of each namespace and kind.
  public var queues: [NamespaceName: [RowKind: QueueStatus]]
  /// The tables of records of each namespace.
  public var records: [NamespaceName: [RecordTableStatus]] = [:]
  /// Reports that got fields of records since the start, and those whose record is not there.
  public var enriched: [NamespaceName: Int] = [:], notEnriched: [NamespaceName: Int] = [:]
  /// The counts of the triggers of each namespace.
  public var triggers: [NamespaceName: [String: TriggerState]] = [:]
  /// Of the database and its log.
  public var bytes: Int
}

extension Engine {
  /// Figures that are known in memory, and one row a priority; nothing is counted. It hangs where the store's queue does.
  public nonisolated func storeFigures() async throws(StoreError) -> StoreFigures {
    let (queues, reading) = (try await parts.store.status(), await parts.store.records)
    let records = queues.keys.reduce(into: [:]) { $0[$1] = reading.tables(of: $1) }
    let enrichments = await parts.store.enrichments
    return StoreFigures(
      queues: queues, records: records, enriched: enrichments.added, notEnriched: enrichments.missing,
      triggers: await parts.store.triggers, bytes: await parts.store.storeBytes())
  }

  /// Why no reports are taken at present; nil: they are. Never waits.
  public nonisolated var obstacle: String? {
    let health = storeHealth
    guard !health.takesReports else { return nil }
    return "reports are refused, the store is \(health.state.rawValue)" + (health.cause.map { ": \($0)" } ?? "")
  }
}
