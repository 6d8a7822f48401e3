import CLinux
import Glibc
public import PrismBase
public import PrismProtocol

/// Answers `prismctl` and other tools over the control socket (docs/control-protocol.md): one JSON request a line, one
/// or more
/// JSON answers a line each, request after request on a connection.
///
/// Only root, the daemon's own user and the members of `control.group` are answered; the socket's mode keeps the others
/// out already, unless someone widened it. Runs on a thread of its own.
public actor ControlServer {
  /// The answers to one request; the last one has `"done":true`. It is read only as fast as the client reads, and ended
  /// early when the client goes away: don't buffer without bound in it.
  public typealias Handler = @Sendable (ControlRequest) -> AsyncStream<JSONValue>

  static let connectionsMax = 64
  /// What the loop calls the listening socket; connections are numbered from 1.
  private static let listenerID = 0

  private nonisolated let loop: SocketLoop
  private let listener: UnixListener
  private let log: Logger
  private var handler: Handler?
  private var groupID: UInt32?
  private var accepting: SocketLoop.Watch
  private var hasStopped = false
  private var connections: [Int: ControlConnection] = [:]
  private var lastID = 0

  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Takes over `listener`. - Parameter group: `control.group`; its members are answered too.
  /// - Throws: `unknownGroup`, `system`.
  public init(listener: UnixListener, group: String?, log: Logger) throws(SocketError) {
    groupID = try Self.groupID(of: group, path: listener.path)
    try Self.letIn(group, at: listener)
    loop = try SocketLoop(for: listener.path)
    accepting = try loop.watch(listener, id: Self.listenerID)
    (self.listener, self.log) = (listener, log)
  }

  /// From a reload: for connections from now on. - Throws: `unknownGroup`, `system`; then all stays as it was.
  public func update(group: String?) throws(SocketError) {
    let newID = try Self.groupID(of: group, path: listener.path)
    try Self.letIn(group, at: listener)
    groupID = newID
  }

  /// The service manager's socket may not take our group: then everybody may connect, and the peer's user alone decides.
  private static func letIn(_ group: String?, at listener: UnixListener) throws(SocketError) {
    if !(try listener.update(mode: 0o660, group: group)) { try listener.update(mode: 0o666, group: nil) }
  }

  public func start(handler: @escaping Handler) {
    precondition(self.handler == nil, "a control server is started once")
    self.handler = handler
    loop.start { [weak self] ready in self?.assumeIsolated { $0.serve(ready) } }
    accepting.set(reads: true, writes: false)
  }

  /// Ends every connection and closes the socket. Requests under way are cancelled.
  public func stop() {
    guard !hasStopped else { return }
    hasStopped = true
    accepting.end()
    listener.close()
    for connection in connections.values { connection.assumeIsolated { $0.close() } }
    connections = [:]
  }

  private func serve(_ ready: [Int]) {
    for id in ready {
      if id == Self.listenerID && !hasStopped { acceptAll() }  // a job may have stopped it since
      connections[id]?.assumeIsolated { $0.ready() }
    }
  }

  private func acceptAll() {
    while true {
      switch listener.accept(refuse: { Self.refuse($0, "the daemon has no descriptors left; try again", .unavailable) })
      {
      case .connection(let descriptor): admit(descriptor)
      case .refused: log.fault("control.descriptors", "no descriptors left for the control socket")
      case .nothing: return
      case .exhausted(let code): return pause(because: code)
      }
    }
  }

  /// The socket stays readable while nobody can be accepted: without a pause the queue would spin.
  private func pause(because code: Int32) {
    log.fault(
      "control.accept", "cannot accept on the control socket", ["cause": String(cString: strerror(code))])
    accepting.set(reads: false, writes: false)
    Task {
      try? await Task.sleep(for: .seconds(1))  // cancelled: then at once
      if !hasStopped { accepting.set(reads: true, writes: false) }
    }
  }

  private func admit(_ descriptor: Int32) {
    if let (message, exitCode) = objection(to: descriptor) {
      Self.refuse(descriptor, message, exitCode)
      Glibc.close(descriptor)
      return
    }
    log.faultEnded("control.accept", "the control socket accepts again")
    log.faultEnded("control.descriptors", "there are descriptors again")
    guard let handler else { preconditionFailure("nothing is accepted before there is a handler") }
    lastID += 1
    let id = lastID
    let connection = ControlConnection(descriptor: descriptor, loop: loop, handler: handler) {
      [weak self] _ in self?.assumeIsolated { _ = $0.connections.removeValue(forKey: id) }
    }
    connections[id] = connection
    if !connection.assumeIsolated({ $0.start(id: id) }) { connections[id] = nil }
  }

  private func objection(to descriptor: Int32) -> (message: String, exitCode: ExitCode)? {
    guard let peer = PeerCredentials(of: descriptor) else {
      return ("the kernel does not say who is asking", .notPermitted)
    }
    guard ControlAccess.isAllowed(peer, ownUserID: geteuid(), groupID: groupID) else {
      log.fault(
        "control.refused.\(peer.userID)", "refused a control connection",
        ["uid": String(peer.userID), "pid": String(peer.processID)])
      return (
        "user \(peer.userID) may not control this daemon: ask as root, as its own user, or as a member of control.group",
        .notPermitted
      )
    }
    log.faultEnded(
      "control.refused.\(peer.userID)", "the user may control the daemon now", ["uid": String(peer.userID)])
    guard connections.count < Self.connectionsMax else {
      return ("\(Self.connectionsMax) control connections are open already; try again", .unavailable)
    }
    return nil
  }

  /// One line, as far as the socket takes it: it is fresh, so its buffer is empty.
  private static func refuse(_ descriptor: Int32, _ message: String, _ exitCode: ExitCode) {
    let line = ControlAnswer.error(message, exitCode).bytes + [0x0A]
    _ = prism_send(descriptor, line, line.count)
  }

  private static func groupID(of name: String?, path: String) throws(SocketError) -> UInt32? {
    guard let name else { return nil }
    guard let id = Accounts.groupID(of: name) else { throw .unknownGroup(name, path: path) }
    return id
  }
}
