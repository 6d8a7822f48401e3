import PrismBase

/// Knows which sessions were signed out, by this replica and others: read again when 2 s have passed, so that a session ends
/// everywhere within 5.
actor EndedSessions {
  private static let interval: Duration = .seconds(2)

  private let store: any EndedSessionStore
  private let time: any TimeSource
  private var nonces: Set<String>?
  private var readAt: Duration?

  init(_ store: any EndedSessionStore, time: any TimeSource) { (self.store, self.time) = (store, time) }

  /// - Throws: 503 while nothing is known.
  func contains(_ session: ReaderSession) async throws(CollectorRefusal) -> Bool {
    if readAt.map({ time.uptime - $0 >= Self.interval }) ?? true {
      readAt = time.uptime
      do throws(StoreFailure) { nonces = try await store.endedSessions() } catch {
        if nonces == nil { readAt = nil }
      }
    }
    guard let nonces else { throw .unreadable }
    return nonces.contains(session.nonce)
  }

  /// - Throws: 503 if it can't be stored: then the session goes on.
  func end(_ session: ReaderSession) async throws(CollectorRefusal) {
    do throws(StoreFailure) {
      try await store.endSession(session.nonce, expires: session.expires, now: time.unixMilliseconds / 1000)
    } catch { throw .unreadable }
    nonces?.insert(session.nonce)
    readAt = nil  // one that is reading now may not know it
  }
}
