import Dispatch
import Glibc
import PrismBase
import Synchronization

/// Ends connections that are late.
///
/// libmicrohttpd's own timeout restarts with every byte, so a peer that sends one byte a second would stay for ever.
/// Each connection has a deadline here. At the deadline its socket is shut down, and libmicrohttpd finds it closed.
final class ConnectionWatch: Sendable {
  private struct Entry {
    let socket: Int32
    /// nil while the connection waits for us.
    var deadline: Duration?
  }

  private struct State {
    var entries: [LibraryPointer: Entry] = [:]
    var isArmed = false
    /// No deadline is later than this.
    var latestDeadline: Duration?
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "prism.http.watch")
  private let time: any TimeSource
  private let tick: DispatchTimeInterval

  /// - Parameter precision: how late a deadline may be noticed.
  init(time: any TimeSource, precision: Duration) {
    self.time = time
    tick = .milliseconds(Int(precision / .milliseconds(1)))
  }

  func opened(_ connection: LibraryPointer, socket: Int32, within limit: Duration) {
    let mustArm = state.withLock { state in
      state.entries[connection] = Entry(socket: socket, deadline: deadline(limit, state))
      defer { state.isArmed = true }
      return !state.isArmed
    }
    if mustArm { arm() }
  }

  /// Called before libmicrohttpd closes the socket, so a number that is used again is never shut down by mistake.
  func closed(_ connection: LibraryPointer) {
    state.withLock { $0.entries[connection] = nil }
  }

  func expect(_ connection: LibraryPointer, within limit: Duration?) {
    state.withLock { state in
      let deadline = limit.map { self.deadline($0, state) }
      state.entries[connection]?.deadline = deadline
    }
  }

  /// From now on no connection stays longer than `limit`, but for those that wait for us.
  func endAll(within limit: Duration) {
    let latest = time.uptime + limit
    state.withLock { state in
      state.latestDeadline = latest
      state.entries = state.entries.mapValues { entry in
        Entry(socket: entry.socket, deadline: entry.deadline.map { min($0, latest) })
      }
    }
  }

  private func deadline(_ limit: Duration, _ state: State) -> Duration {
    let deadline = time.uptime + limit
    return state.latestDeadline.map { min($0, deadline) } ?? deadline
  }

  private func arm() {
    queue.asyncAfter(deadline: .now() + tick) { [weak self] in self?.endTheLate() }
  }

  private func endTheLate() {
    let now = time.uptime
    let mustArm = state.withLock { state in
      for entry in state.entries.values {
        if let deadline = entry.deadline, deadline <= now { shutdown(entry.socket, Int32(SHUT_RDWR)) }
      }
      state.isArmed = !state.entries.isEmpty
      return state.isArmed
    }
    if mustArm { arm() }
  }
}
