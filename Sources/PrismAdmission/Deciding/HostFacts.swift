public import PrismBase

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
  /// The boot's id; nil if the machine doesn't say.
  public var bootID: String?
  /// How the clock is set; nil until a report comes.
  public var clock: ClockSetting?

  /// Facts as they were read.
  public init(
    deviceID: String, brand: String? = nil, model: String? = nil, systemVersion: String, bootID: String? = nil
  ) {
    (self.deviceID, self.brand, self.model, self.systemVersion) = (deviceID, brand, model, systemVersion)
    self.bootID = bootID
  }

  /// - Returns: milliseconds since 1970. `clock` is how the clock is set then.
  public mutating func read(_ time: any TimeSource) -> Int64 {
    let reading = ClockReading(time)
    if clock?.step(to: reading.setting) != 0 { clock = reading.setting }
    return reading.unixMilliseconds
  }
}
