public import PrismConfig
public import PrismProtocol

extension StoreQuota {
  /// The quota that the configuration of a namespace sets.
  public init(_ configuration: NamespaceConfiguration) {
    self.init(
      bytesMax: configuration.maxStoreBytes, userBytesMax: configuration.maxUserBytes ?? .max,
      evictsOldest: configuration.onFull == .evictOldest, ringBytesMax: configuration.ring.bytes)
  }
}
