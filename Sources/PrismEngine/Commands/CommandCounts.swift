public import PrismProtocol

/// Counts the ends of commands since the daemon started, for metrics.
public struct CommandCounts: Sendable, Equatable {
  /// By namespace and result: `done`, `failed`, `interrupted`, `expired` and the reasons of refusals.
  public private(set) var ends: [NamespaceName: [String: Int]] = [:]

  /// All labels.
  static let results = [
    "done", "failed", "interrupted", "expired", "unreadable", "not_allowed", "arguments", "unsigned", "signature",
    "changed", "replayed", "too_many",
  ]

  public init() {}

  mutating func add(_ result: String, _ namespace: NamespaceName) {
    ends[namespace, default: [:]][result, default: 0] += 1
  }
}

extension MetricsText {
  /// - Parameter namespaces: those that take commands.
  mutating func add(_ counts: CommandCounts, of namespaces: [NamespaceName]) {
    begin("prism_commands_total", .counter, "Commands of the server that ended, by how, or why they were refused.")
    for namespace in Set(namespaces).union(counts.ends.keys).sorted() {
      for result in CommandCounts.results {
        sample(counts.ends[namespace]?[result] ?? 0, ["namespace": namespace.text, "result": result])
      }
    }
  }
}
