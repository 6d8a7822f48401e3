/// Why a connection was closed, since there were too many, or its body came too slowly.
public enum CrowdedReason: String, Sendable, CaseIterable {
  /// All places were taken: an idle connection gave way.
  case idle
  /// All places of connections without a proof were taken: one of them gave way.
  case unproven
  /// A body came too slowly.
  case slow
}
