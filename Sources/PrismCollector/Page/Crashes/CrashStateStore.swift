/// Remembers what operators said about groups of crashes. A write is at rest when its call returns.
protocol CrashStateStore: Sendable {
  /// All of them, at most `CrashStates.countMax`.
  func all() async throws(StoreFailure) -> [CrashState]

  /// Replaces the state of a group. Past the most that are kept, the one that was changed first is forgotten.
  func put(_ state: CrashState) async throws(StoreFailure)

  /// Notes that a resolved group is back, unless an operator or another replica changed it since.
  /// - Returns: whether this call noted it.
  func markRegressed(_ state: CrashState, at time: Int64) async throws(StoreFailure) -> Bool
}

enum CrashStates {
  static let countMax = 20_000
}
