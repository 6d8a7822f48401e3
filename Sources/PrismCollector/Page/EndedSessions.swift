import PrismBase
import PrismSQLite

/// Knows which sessions of the page were signed out, by this replica and others, until they would have expired. They are read
/// again when 2 s have passed, so that a session ends everywhere within 5.
actor EndedSessions {
  /// Sessions that are remembered; past them, those that expire first are forgotten.
  static let countMax = 100_000
  private static let interval: Duration = .seconds(2)

  private enum Column: String, SQLiteColumn { case nonce, expires }

  private let executor = DispatchQueueExecutor(label: "prism.collector.sessions")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession
  private let time: any TimeSource
  private var nonces: Set<String>?
  private var readAt: Duration?

  init(_ database: FleetDatabase, time: any TimeSource) { (session, self.time) = (FleetSession(database), time) }

  /// - Throws: 503 while nothing is known.
  func contains(_ session: ReaderSession) throws(CollectorRefusal) -> Bool {
    if readAt.map({ time.uptime - $0 >= Self.interval }) ?? true {
      readAt = time.uptime
      do throws(StoreFailure) { nonces = try read() } catch {
        if nonces == nil { readAt = nil }
      }
    }
    guard let nonces else { throw .unreadable }
    return nonces.contains(session.nonce)
  }

  /// At rest when it returns. - Throws: 503 if it can't be stored: then the session goes on.
  func end(_ ended: ReaderSession) throws(CollectorRefusal) {
    let now = time.unixMilliseconds / 1000
    do throws(StoreFailure) {
      try session.write { statements in
        try statements.insert(
          Column.self, into: "ended_sessions", [ended.nonce, ended.expires], onConflict: "DO NOTHING")
        try statements.run("DELETE FROM ended_sessions WHERE expires < $1", [now])
        try statements.run(
          """
          DELETE FROM ended_sessions WHERE nonce IN (SELECT nonce FROM ended_sessions
            ORDER BY expires DESC, nonce LIMIT 1000 OFFSET \(Self.countMax))
          """)
      }
    } catch { throw .unreadable }
    nonces?.insert(ended.nonce)
  }

  private func read() throws(StoreFailure) -> Set<String> {
    try session.read { Set(try $0.rows(of: Column.self, "FROM ended_sessions").map { $0.text(.nonce) }) }
  }
}
