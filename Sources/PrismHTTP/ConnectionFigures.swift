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

/// Why a connection was closed, since there were too many, or its body came too slowly.
public enum CrowdedReason: String, Sendable, CaseIterable {
  /// All places were taken: an idle connection gave way.
  case idle
  /// All places of connections without a proof were taken: one of them gave way.
  case unproven
  /// A body came too slowly.
  case slow
}
