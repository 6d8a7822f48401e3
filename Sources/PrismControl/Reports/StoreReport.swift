public import PrismProtocol

/// How the store is, and what happened to it since the daemon's start.
public struct StoreReport: ControlMessage {
  /// `working`, or what it does instead.
  public var state = "working"
  /// The time since which the store is in this state, RFC 3339.
  public var since = ""
  /// Whether reports are accepted now.
  public var takesReports = true
  /// The cause of the last fault; nil if there was no fault.
  public var cause: String?
  /// The number of failed uses of the database since the start.
  public var faults = 0
  /// Damaged files that were moved out of the way, and the rows that were read from them or lost with them.
  public var setAside = 0, salvagedRows = 0, lostRows = 0
  /// False once that was a day ago, or `ack` was asked for.
  public var isNews = true

  /// Names of files in the state folder that hold reports which could not be brought over.
  public var leftBehind: [String] = []
  /// Reports by namespace and kind that are still to be brought over; 0: their number is not known yet.
  public var awaited = NamedValues<NamedValues<Int>>()

  public init() {}
}
