import Dispatch
import Glibc
import PrismBase
import Synchronization

/// Ends connections that are late, and those that give way.
///
/// libmicrohttpd's own timeout restarts with every byte, so a peer that sends one byte a second would stay for ever.
/// Each connection has a deadline here. At the deadline its socket is shut down, and libmicrohttpd finds it closed.
final class ConnectionWatch: Sendable {
  private struct State {
    var table: ConnectionTable
    var isArmed = false
    /// No deadline is later than this.
    var latestDeadline: Duration?
    var closed: [CrowdedReason: Int] = [:]
    /// Addresses behind proxies whose requests proved their senders.
    var provenClients: Set<String> = []
    /// Sockets of connections that libmicrohttpd closed, until their peers have read the answer.
    var lingering: [(socket: Int32, deadline: Duration)] = []
  }

  /// A body may come slower only in its first seconds.
  private static let bodyGrace: Duration = .seconds(5)
  private static let bodyBytesPerSecondMin = 240
  private static let provenClientsMax = 16_384
  private static let lingeringMax = 256
  private static let lingeringTime: Duration = .seconds(2)

  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "prism.http.watch")
  private let options: HTTPServerOptions
  private let time: any TimeSource
  private let tick: DispatchTimeInterval

  init(_ options: HTTPServerOptions, time: any TimeSource) {
    (self.options, self.time) = (options, time)
    state = Mutex(State(table: ConnectionTable(connectionsMax: options.connectionsMax)))
    let shortest = min(options.headTimeout, options.bodyTimeout, options.stopTimeout)
    let precision = max(.milliseconds(10), min(.seconds(1), shortest / 4))
    tick = .milliseconds(Int(precision / .milliseconds(1)))
  }

  deinit { for (socket, _) in state.withLock({ $0.lingering }) { close(socket) } }

  var figures: ConnectionFigures {
    state.withLock { state in
      ConnectionFigures(
        proven: state.table.openCount - state.table.unprovenCount, unproven: state.table.unprovenCount,
        closed: state.closed)
    }
  }

  // MARK: What becomes of a connection

  func opened(_ connection: LibraryPointer, socket: Int32, from peer: HTTPPeer) {
    let (mustArm, reason) = state.withLock { state in
      defer { state.isArmed = true }
      let entry = ConnectionTable.Entry(
        socket: socket, address: peer.network, deadline: deadline(options.headTimeout, state),
        isProven: options.trustedProxies.contains { $0.contains(peer.address) })
      let victim = state.table.open(connection, entry)
      if let victim { end(victim.0, victim.1, &state) }
      return (!state.isArmed, victim?.1)
    }
    if mustArm { arm() }
    if let reason { options.onCrowded?(reason, peer.address) }
  }

  /// Called before libmicrohttpd closes the socket, so a number that is used again is never shut down by mistake.
  func closed(_ connection: LibraryPointer) {
    state.withLock { state in
      if let entry = state.table[connection], entry.lingers, state.lingering.count < Self.lingeringMax {
        // While it is open here no reset makes the peer miss its answer.
        let socket = fcntl(entry.socket, F_DUPFD_CLOEXEC, 0)
        if socket >= 0 { state.lingering.append((socket, time.uptime + Self.lingeringTime)) }
      }
      state.table.close(connection)
    }
  }

  /// A head was read.
  /// - Parameter client: its sender's address: another one than the connection's behind a proxy, whose connections carry the
  ///   requests of many.
  /// - Returns: whether the sender proved itself before.
  func began(_ connection: LibraryPointer, of client: String, bodyTime: Duration) -> Bool {
    state.withLock { state in
      state.table.set(idle: false, connection)
      let began = time.uptime
      state.table.change(connection) { $0.body = (began, 0, bodyTime) }
      let deadline = self.deadline(min(bodyTime, Self.bodyGrace), state)
      state.table.change(connection) { $0.deadline = deadline }
      guard let entry = state.table[connection] else { return false }
      return entry.address == client ? entry.isProven : state.provenClients.contains(client)
    }
  }

  /// A part of a body came. A body must come with 240 bytes a second, but for its first 5 s.
  func received(_ connection: LibraryPointer, _ bytes: Int) {
    state.withLock { state in
      guard var body = state.table[connection]?.body else { return }
      body.bytes += bytes
      let limit = min(body.timeMax, Self.bodyGrace + .seconds(Double(body.bytes) / Double(Self.bodyBytesPerSecondMin)))
      let deadline = self.deadline(body.began + limit - time.uptime, state)
      state.table.change(connection) { entry in (entry.body, entry.deadline) = (body, deadline) }
    }
  }

  /// - Parameter limit: nil: it waits for us.
  func expect(_ connection: LibraryPointer, within limit: Duration?) {
    state.withLock { state in
      let deadline = limit.map { self.deadline($0, state) }
      state.table.change(connection) { entry in (entry.body, entry.deadline, entry.onGone) = (nil, deadline, nil) }
    }
  }

  /// It waits for an answer. - Parameter gone: ends the work for it, if its client goes before.
  func waits(_ connection: LibraryPointer, _ gone: @escaping @Sendable () -> Void) {
    state.withLock { $0.table.change(connection) { $0.onGone = gone } }
  }

  /// Its answer has left.
  func answered(_ connection: LibraryPointer) {
    expect(connection, within: options.headTimeout)
    state.withLock { $0.table.set(idle: true, connection) }
  }

  func prove(_ connection: LibraryPointer, of client: String) {
    state.withLock { state in
      state.table.prove(connection)
      guard let address = state.table[connection]?.address, address != client else { return }
      if state.provenClients.count >= Self.provenClientsMax { state.provenClients = [] }
      state.provenClients.insert(client)
    }
  }

  /// Its answer goes out before its body is read.
  func linger(_ connection: LibraryPointer) { state.withLock { $0.table.change(connection) { $0.lingers = true } } }

  /// Closes the unproven connection whose body comes slowest, but for `own`. - Returns: false: there is no such connection.
  func endSlowestBody(but own: LibraryPointer) -> Bool {
    let found = state.withLock { state -> String? in
      guard let slowest = state.table.slowestBody(but: own, now: time.uptime) else { return nil }
      let address = state.table[slowest]?.address
      end(slowest, .slow, &state)
      return address
    }
    if let found { options.onCrowded?(.slow, found) }
    return found != nil
  }

  /// Whether its body is the one of unproven senders' that goes on when their part of the memory is full.
  func hasLargestBody(_ connection: LibraryPointer) -> Bool {
    state.withLock { $0.table.hasLargestBody(connection) }
  }

  /// From now on no connection stays longer than `limit`, but for those that wait for us.
  func endAll(within limit: Duration) {
    let latest = time.uptime + limit
    state.withLock { state in
      state.latestDeadline = latest
      for connection in state.table.entries.keys {
        state.table.change(connection) { $0.deadline = $0.deadline.map { min($0, latest) } }
      }
    }
  }

  private func deadline(_ limit: Duration, _ state: State) -> Duration {
    let deadline = time.uptime + limit
    return state.latestDeadline.map { min($0, deadline) } ?? deadline
  }

  private func end(_ connection: LibraryPointer, _ reason: CrowdedReason, _ state: inout State) {
    state.table.end(connection)
    state.closed[reason, default: 0] += 1
    guard let entry = state.table[connection] else { return }
    // Nothing else is sent while a body comes. Within TLS the library alone can write.
    if entry.body != nil, options.tls == nil {
      _ = send(entry.socket, Self.late, Self.late.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    }
    shutdown(entry.socket, Int32(SHUT_RDWR))
  }

  private static let late = Array(
    ("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 38\r\n\r\n"
      + "the body came slower than 240 bytes/s\n").utf8)

  // MARK: Time

  private func arm() {
    queue.asyncAfter(deadline: .now() + tick) { [weak self] in self?.endTheLate() }
  }

  private func endTheLate() {
    let now = time.uptime
    let (mustArm, slow, gone) = state.withLock { state in
      var (slow, gone): ([String], [@Sendable () -> Void]) = ([], [])
      for (connection, entry) in state.table.entries {
        var hangup = pollfd(fd: entry.socket, events: 0x2000, revents: 0)  // POLLRDHUP
        if let onGone = entry.onGone, poll(&hangup, 1, 0) > 0 {
          gone.append(onGone)
          state.table.change(connection) { $0.onGone = nil }
        }
        guard let deadline = entry.deadline, deadline <= now, !entry.isEnding else { continue }
        if entry.body != nil {
          slow.append(entry.address)
          end(connection, .slow, &state)
        } else {
          shutdown(entry.socket, Int32(SHUT_RDWR))
        }
      }
      for (socket, deadline) in state.lingering where deadline <= now { close(socket) }
      state.lingering.removeAll { $0.deadline <= now }
      state.isArmed = !state.table.entries.isEmpty || !state.lingering.isEmpty
      return (state.isArmed, slow, gone)
    }
    if mustArm { arm() }
    for onGone in gone { onGone() }
    for address in slow { options.onCrowded?(.slow, address) }
  }
}
