/// How the wall clock is set: when this boot began by it. It stays the same until the clock is set.
public struct ClockSetting: Sendable, Hashable {
  /// By more than this the clock was set; by less it was read a little later.
  public static let toleranceMilliseconds: Int64 = 1000

  /// Milliseconds since 1970.
  public let bootTime: Int64

  public init(bootTime: Int64) { self.bootTime = bootTime }

  /// By how many milliseconds the clock was set forward between this setting and `later`; 0 if it was not set.
  public func step(to later: ClockSetting) -> Int64 {
    let step = later.bootTime.subtractingReportingOverflow(bootTime).partialValue
    return step.magnitude > UInt64(Self.toleranceMilliseconds) ? step : 0
  }
}

/// Both clocks at one moment.
public struct ClockReading: Sendable {
  /// Milliseconds since 1970.
  public let unixMilliseconds: Int64
  public let setting: ClockSetting

  public init(_ time: any TimeSource) {
    unixMilliseconds = time.unixMilliseconds
    setting = ClockSetting(bootTime: unixMilliseconds - time.uptime.wholeMilliseconds)
  }
}
