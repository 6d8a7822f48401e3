import PrismBase

/// A request that stops in its middle, or a client that doesn't take its last answer, is waited for `stallMax`. One task
/// looks after all of them, and there is none while there is nothing to look after.
extension IngestServer {
  /// Sets or lifts the deadline of a connection, after anything happened to it.
  func watch(_ connection: IngestConnection) {
    let isHalfWay = connection.isWithinRequest && connection.pauses.isEmpty
    let isDue = isHalfWay || connection.isWriteShut || isLastAnswerUnread(connection)
    guard isDue, !connection.isGone else {
      connection.deadline = nil
      return
    }
    // What comes after the last answer is only read away: it earns no more time.
    if connection.isWriteShut && connection.deadline != nil { return }
    connection.deadline = time.uptime + Self.stallMax
    if !isReaping { reap() }
  }

  private func isLastAnswerUnread(_ connection: IngestConnection) -> Bool {
    connection.unsentBytes > 0 && (connection.mustClose || connection.pauses.contains(.ended))
  }

  private func reap() {
    isReaping = true
    Task {
      while let earliest = connections.values.compactMap(\.deadline).min() {
        // Not more than once a second, however many connections there are.
        try? await time.sleep(until: max(earliest, time.uptime + .seconds(1)))  // cancelled: looks at once
        for connection in connections.values where connection.deadline.map({ $0 <= time.uptime }) == true {
          abandon(connection)
        }
      }
      isReaping = false
    }
  }
}
