public import PrismConfig
public import PrismProtocol

/// The difference that a published snapshot made, by namespace.
public struct ConfigurationChange: Sendable, Equatable {
  /// The snapshots before and after.
  public let old: Snapshot, new: Snapshot

  public init(from old: Snapshot, to new: Snapshot) { (self.old, self.new) = (old, new) }

  /// Whether the two are equal.
  public var isNothing: Bool { old == new }

  /// Namespaces that work differently now: added, changed, retired, or with a key or device id that did.
  public var namespaces: Set<NamespaceName> {
    let names = Set(old.namespaces.keys).union(new.namespaces.keys)
    return names.filter {
      PipelineSettings(namespace: $0, snapshot: old, automaticDeviceID: "")
        != PipelineSettings(namespace: $0, snapshot: new, automaticDeviceID: "")
    }
  }
}
