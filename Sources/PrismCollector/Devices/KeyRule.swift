/// The rule for a key: which senders may use it, and how.
public struct KeyRule: Sendable, Equatable {
  /// The file holds a master: each device's own key is made from it (docs/packet.md, "Keys").
  public var derivesForDevice = false
  /// Namespaces that are taken under the key; nil: all.
  public var namespaces: Set<String>?

  /// One key for all devices and namespaces.
  public init() {}
}
