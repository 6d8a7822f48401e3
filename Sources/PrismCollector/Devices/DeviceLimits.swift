/// How much a device, and all of them together, may send. Each replica counts for itself, since its start.
public struct DeviceLimits: Sendable, Equatable {
  /// Packets a minute of one device, with bursts of as many; nil: any number.
  public var packetsPerMinute: Int?
  /// Unpacked bytes within 24 hours of one device, with 128 for each row; nil: any number.
  public var bytesPerDay: Int?
  /// Packets a minute of all devices, with bursts of as many; nil: any number.
  public var allPacketsPerMinute: Int?
  /// After a start, devices that are let in a second, until all that are known may send.
  public var admittedPerSecond = 500

  /// No limit but `admittedPerSecond`.
  public init() {}

  var areNone: Bool { packetsPerMinute == nil && bytesPerDay == nil && allPacketsPerMinute == nil }
}
