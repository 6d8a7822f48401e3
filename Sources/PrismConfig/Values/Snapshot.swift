public import PrismProtocol

/// The whole configuration, valid by construction and immutable. Each part of the daemon holds the snapshot that it
/// works with, and takes the next one when the hub publishes it.
public struct Snapshot: Sendable, Equatable {
  /// Rises by one with every snapshot that took effect; 1 at start.
  public var generation: Int
  /// The daemon's own part.
  public var daemon: DaemonConfiguration
  /// `prism` is always among them.
  public var namespaces: [NamespaceName: NamespaceConfiguration]

  public init(generation: Int, daemon: DaemonConfiguration, namespaces: [NamespaceName: NamespaceConfiguration]) {
    self.generation = generation
    self.daemon = daemon
    self.namespaces = namespaces
  }
}
