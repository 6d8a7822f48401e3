/// The connections of a server.
public struct ConnectionFigures: Sendable, Equatable {
  /// Open now: those whose sender is proven, and the others.
  public var proven = 0, unproven = 0
  /// Since the start: those that the server closed for others.
  public var closed: [CrowdedReason: Int] = [:]

  public init(proven: Int = 0, unproven: Int = 0, closed: [CrowdedReason: Int] = [:]) {
    (self.proven, self.unproven, self.closed) = (proven, unproven, closed)
  }
}
