public import PrismConfig
public import PrismProtocol

/// What a published snapshot changed, by namespace.
public struct ConfigurationChange: Sendable, Equatable {
  public let old: Snapshot, new: Snapshot

  public init(from old: Snapshot, to new: Snapshot) { (self.old, self.new) = (old, new) }

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
