/// The host's part of the common information (docs/ingest-protocol.md): read once at start, handed in as a value.
public struct HostFacts: Sendable, Equatable {
  /// `SYS_DEVICE_ID`, unless the configuration names one.
  public var deviceID: String
  /// The hardware's vendor and product; nil if the machine doesn't say.
  public var brand: String?
  /// The product; nil if the machine doesn't say.
  public var model: String?
  /// The system's pretty name and the kernel.
  public var systemVersion: String

  /// Facts as they were read.
  public init(deviceID: String, brand: String? = nil, model: String? = nil, systemVersion: String) {
    (self.deviceID, self.brand, self.model, self.systemVersion) = (deviceID, brand, model, systemVersion)
  }
}
