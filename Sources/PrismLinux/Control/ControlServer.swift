import CLinux
import Glibc
public import PrismBase
public import PrismControl
public import PrismProtocol

/// Answers `prismctl` and other tools over the control socket (docs/control-protocol.md): one JSON request a line, one
/// or more
/// JSON answers a line each, request after request on a connection.
///
/// Root, the daemon's own user and the members of `control.group` and `control.readers` are answered; the handler decides
/// by their role what for. Runs on a thread of its own.
public actor ControlServer {
  /// The answers to one request; the last one has `"done":true`. It is read only as fast as the client reads, and ended
  /// early when the client goes away: don't buffer without bound in it.
  public typealias Handler = @Sendable (ControlRequest, ControlCaller) -> AsyncStream<JSONValue>

  /// The listening socket's number in the loop; connections are numbered from 1.
  private static let listenerID = 0

  private nonisolated let loop: SocketLoop
  private let listener: UnixListener
  private let log: Logger
  private var handler: Handler?
  private var access: ControlAccess
  private var accepting: SocketLoop.Watch
  private var hasStopped = false
  private var connections: [Int: ControlConnection] = [:]
  private var lastID = 0

  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Takes over `listener`. - Parameters group, readers: `control.group` and `control.readers`, by name or number.
  /// - Throws: `unknownGroup`, `system`.
  public init(listener: UnixListener, group: String?, readers: String? = nil, log: Logger) throws(SocketError) {
    access = try Self.access(group: group, readers: readers, path: listener.path)
    try Self.letIn(group, readers, at: listener)
    loop = try SocketLoop(for: listener.path)
    accepting = try loop.watch(listener, id: Self.listenerID)
    (self.listener, self.log) = (listener, log)
  }

  /// From a reload: for connections from now on. - Throws: `unknownGroup`, `system`; then all stays as it was.
  public func update(group: String?, readers: String?) throws(SocketError) {
    let new = try Self.access(group: group, readers: readers, path: listener.path)
    try Self.letIn(group, readers, at: listener)
    access = new
  }

  /// The service manager's socket may not take our group: then everybody may connect, and the peer's user alone decides.
  private static func letIn(_ group: String?, _ readers: String?, at listener: UnixListener) throws(SocketError) {
    let rights = ControlAccess.rights(group: group, readers: readers)
    if !(try listener.update(mode: rights.mode, group: rights.group)) { try listener.update(mode: 0o666, group: nil) }
  }

  /// Begins to accept connections and to answer requests with `handler`.
  public func start(handler: @escaping Handler) {
    precondition(self.handler == nil, "a control server is started once")
    self.handler = handler
    loop.start { [weak self] ready in
      self?.assumeIsolated { $0.serve(ready) }
      return false
    }
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
      switch listener.accept(refuse: {
        Self.refuse($0, ExitCode.unavailable.failure("the daemon has no descriptors left; try again"))
      })
      {
      case .connection(let descriptor): admit(descriptor)
      case .refused: log.fault("control.descriptors", "no descriptors left for the control socket")
      case .nothing: return
      case .exhausted(let code): return pause(because: code)
      }
    }
  }

  /// The socket stays readable while no connection can be accepted: without a pause the queue would spin.
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
    let caller: ControlCaller
    do throws(Answers.Failure) { caller = try self.caller(at: descriptor) } catch {
      Self.refuse(descriptor, error)
      Glibc.close(descriptor)
      return
    }
    log.faultEnded("control.accept", "the control socket accepts again")
    log.faultEnded("control.descriptors", "there are descriptors again")
    guard let handler else { preconditionFailure("nothing is accepted before there is a handler") }
    lastID += 1
    let id = lastID
    let connection = ControlConnection(descriptor: descriptor, caller: caller, loop: loop, handler: handler) {
      [weak self] _ in self?.assumeIsolated { _ = $0.connections.removeValue(forKey: id) }
    }
    connections[id] = connection
    if !connection.assumeIsolated({ $0.start(id: id) }) { connections[id] = nil }
  }

  private func caller(at descriptor: Int32) throws(Answers.Failure) -> ControlCaller {
    guard let peer = PeerCredentials(of: descriptor) else {
      throw ExitCode.notPermitted.failure("the kernel does not say who is asking")
    }
    let fields: Logger.Fields = ["uid": String(peer.userID), "pid": String(peer.processID)]
    guard let role = access.role(of: peer) else {
      log.fault("control.refused.\(peer.userID)", "refused a control connection", fields)
      throw ExitCode.notPermitted.failure(
        "user \(peer.userID) may not control this daemon: ask as root, as its own user, or as a member of "
          + "control.group (everything) or control.readers (what changes nothing)")
    }
    log.faultEnded("control.refused.\(peer.userID)", "the user may control the daemon now", fields)
    let caller = ControlCaller(userID: peer.userID, processID: peer.processID, role: role)
    if let refusal = ControlPlaces.refusal(of: caller, among: connections.values.map(\.caller)) {
      throw ExitCode.unavailable.failure(refusal)
    }
    return caller
  }

  /// One line, as far as the socket takes it: it is fresh, so its buffer is empty.
  private static func refuse(_ descriptor: Int32, _ failure: Answers.Failure) {
    let line = failure.line.bytes + [UInt8(ascii: "\n")]
    _ = prism_send(descriptor, line, line.count)
  }

  private static func access(group: String?, readers: String?, path: String) throws(SocketError) -> ControlAccess {
    ControlAccess(
      ownUserID: geteuid(), groupID: try UnixListener.groupID(of: group, path: path),
      readersID: try UnixListener.groupID(of: readers, path: path))
  }
}

/// Which users are answered over the control socket, and as what (docs/control-protocol.md, Roles).
struct ControlAccess: Equatable {
  var ownUserID: UInt32
  /// Of `control.group` and `control.readers`; nil: not configured.
  var groupID: UInt32?, readersID: UInt32?

  /// - Returns: nil for a user who is not answered.
  func role(of peer: PeerCredentials) -> ControlRole? {
    if peer.userID == 0 || peer.userID == ownUserID || groupID.map(peer.isMember) ?? false { return .full }
    return readersID.map(peer.isMember) ?? false ? .reader : nil
  }

  /// A socket's file has one group. With two configured everyone may connect, and the peer's user alone decides.
  static func rights(group: String?, readers: String?) -> (mode: UInt32, group: String?) {
    group == nil || readers == nil || group == readers ? (0o660, group ?? readers) : (0o666, nil)
  }
}

/// How many control connections a user may have, so that readers never lock out operators, nor each other.
enum ControlPlaces {
  static let connectionsMax = 64
  /// Of all readers together, and of one of them.
  static let readersMax = 48, perReaderMax = 16

  /// - Returns: why there is no place; nil: there is one.
  static func refusal(of caller: ControlCaller, among open: some Collection<ControlCaller>) -> String? {
    if open.count >= connectionsMax { return "\(connectionsMax) control connections are open already; try again" }
    guard caller.role == .reader else { return nil }
    let readers = open.filter { $0.role == .reader }
    if readers.count >= readersMax { return "\(readersMax) control connections of readers are open already; try again" }
    guard readers.count(where: { $0.userID == caller.userID }) >= perReaderMax else { return nil }
    return "you have \(perReaderMax) control connections open already; close one"
  }
}
