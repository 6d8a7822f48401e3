/// Decides who may connect. Pure.
public struct ConnectionPlaces: Sendable {
  /// A user with fewer connections than this may take one of the last quarter.
  public static let fewConnections = 8

  /// Of all users.
  public var max: Int
  /// Of one user.
  public var maxPerUser: Int

  /// - Parameter max: of all users. - Parameter maxPerUser: of one.
  public init(max: Int, maxPerUser: Int) { (self.max, self.maxPerUser) = (max, maxPerUser) }

  /// Why a connection is refused; nil: it is taken.
  /// - Parameter open: connections of all users.
  /// - Parameter held: connections of the one who asks.
  public func refusal(open: Int, held: Int) -> IngestCounters.Refusal? {
    if open >= max { return .connections }
    if held >= maxPerUser { return .user }
    let isLastQuarter = open >= max - max / 4
    return isLastQuarter && held >= Self.fewConnections ? .reserved : nil
  }
}
