/// Remembers sessions of the page that were signed out, until they would have expired. A write is at rest when its call returns.
protocol EndedSessionStore: Sendable {
  /// - Parameters:
  ///   - expires: of the session, seconds since 1970.
  ///   - now: those that expired before it are forgotten, and past 100,000 those that expire first.
  func endSession(_ nonce: String, expires: Int64, now: Int64) async throws(StoreFailure)

  /// The nonces of all that are remembered.
  func endedSessions() async throws(StoreFailure) -> Set<String>
}

enum EndedSessionRule {
  static let countMax = 100_000
}
