import PrismAdmission
import PrismBase

/// Closes connections whose request stops in its middle, and those of clients that read no answers, after `stallMax`.
/// One task looks after all of them; it exists only while it is needed.
extension IngestServer {
  /// Sets or lifts the deadline of a connection's request, after anything happened to it.
  func watch(_ connection: IngestConnection) {
    guard !connection.isGone else { return }
    if connection.isWriteShut {
      // Input after the last answer is only read and dropped: it gains no more time.
      if connection.inputDeadline == nil { connection.inputDeadline = time.uptime + Self.stallMax }
    } else if let wait = connection.pollWait {
      if connection.inputDeadline == nil { connection.inputDeadline = time.uptime + wait }
    } else {
      connection.inputDeadline = connection.isWithinRequest ? time.uptime + Self.stallMax : nil
    }
    if connection.deadline != nil, !isUnderWay.reaping { reap() }
  }

  private func reap() {
    isUnderWay.reaping = true
    Task {
      while let earliest = connections.values.compactMap(\.deadline).min() {
        // Not more than once a second, however many connections there are.
        try? await time.sleep(until: max(earliest, time.uptime + .seconds(1)))  // cancelled: looks at once
        for connection in connections.values { closeOverdue(connection) }
        endRound()
      }
      isUnderWay.reaping = false
    }
  }

  private func closeOverdue(_ connection: IngestConnection) {
    let now = time.uptime
    if let deadline = connection.outputDeadline, deadline <= now { return abandon(connection, because: .unread) }
    guard let deadline = connection.inputDeadline, deadline <= now else { return }
    if connection.stopPolling() { return advance(connection) }
    if !connection.isWriteShut, isKeptWaiting(connection) {
      connection.inputDeadline = now + Self.stallMax
    } else {
      abandon(connection, because: .stalled)
    }
  }

  /// Whether it is the daemon that does not go on with a request that is not whole.
  private func isKeptWaiting(_ connection: IngestConnection) -> Bool {
    if connection.hasInput || connection.pauses.contains(.exchange) { return true }
    return connection.pauses == .budget && budget.awaitsCommit(connection.id)
  }
}
