/// The round trip of a connection, as the kernel measured it: the time on the line and in its queues, without that of the
/// receiver.
public struct LineReading: Sendable, Equatable {
  /// When the answer came; smoothed over the last segments.
  public var roundTrip: Duration
  /// The least in the last 5 minutes.
  public var least: Duration

  public init(roundTrip: Duration, least: Duration) { (self.roundTrip, self.least) = (roundTrip, least) }
}
