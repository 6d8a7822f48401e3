import CLinux
import Glibc
public import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismControl
import PrismInputs
import PrismProtocol

/// Other inputs than the ingest socket's own protocols, on connections of this server.
extension IngestServer {
  /// Listens where `daemon` says from now on, beside the ingest socket. Connections that are there stay.
  /// - Parameter isAtStart: an address that another program has keeps nothing else closed: it is awaited.
  /// - Throws: the first address that can't be listened on and was not awaited; then it listens where it did.
  public func listen(_ daemon: DaemonConfiguration, isAtStart: Bool = false) throws(EntranceFault) {
    guard state != .stopping, state != .stopped else { return }
    let wanted = Entrance.addresses(daemon)
    var opened: [OpenEntrance] = []
    for (entrance, address) in wanted.sorted(by: { $0.key.key < $1.key.key }) where !entrances.isOpen(entrance, address)
    {
      do throws(SocketError) { opened.append(try open(entrance, address, daemon)) } catch {
        guard error.exitCode != .configuration, isAtStart || entrances.awaited[entrance] == address else {
          for open in opened { open.close() }
          throw EntranceFault(key: entrance.key, reason: error)
        }
        entrances.wait(for: entrance, address, error, log)
      }
    }
    for (entrance, address) in entrances.awaited where wanted[entrance] != address {
      entrances.endWait(entrance, log)
    }
    for (id, open) in entrances.open where wanted[open.entrance] != open.listener.path { endEntrance(id) }
    for open in opened { add(open) }
  }

  /// Opens the awaited addresses that are free now.
  /// - Parameter daemon: says whose the file of a Unix socket is.
  /// - Returns: whether one is still awaited.
  public func listenAgain(_ daemon: DaemonConfiguration) -> Bool {
    guard state != .stopping, state != .stopped else { return false }
    let free = entrances.awaited.compactMap { try? open($0, $1, daemon) }  // the others were logged at the start
    for open in free { add(open) }
    return !entrances.awaited.isEmpty
  }

  private func open(
    _ entrance: Entrance, _ address: String, _ daemon: DaemonConfiguration
  ) throws(SocketError) -> OpenEntrance {
    lastID += 1
    return try OpenEntrance(id: lastID, entrance, on: address, daemon, of: self)
  }

  private func add(_ open: OpenEntrance) {
    entrances.endWait(open.entrance, log)
    entrances.open[open.id] = open
    if state == .serving { entrances.open[open.id]?.watch.set(reads: true, writes: false) }
    log.info("an input listens", ["key": open.entrance.key, "address": open.listener.path])
  }

  func endEntrance(_ id: Int) {
    if state == .serving { entrances.open[id]?.receive() }
    entrances.open.removeValue(forKey: id)?.close()
  }

  /// Accepts connections at all entrances, or pauses them for a while.
  func watchEntrances(reads: Bool) {
    accepting.set(reads: reads, writes: false)
    for id in entrances.open.keys { entrances.open[id]?.watch.set(reads: reads, writes: false) }
  }

  func watch(_ id: Int, reads: Bool) { entrances.open[id]?.watch.set(reads: reads && state == .serving, writes: false) }

  /// The port of an entrance over TCP; nil if it is not open.
  func port(of entrance: Entrance) -> UInt16? {
    entrances.open.values.first { $0.entrance == entrance }.flatMap { ($0.listener as? LoopbackListener)?.port }
  }
}

/// The inputs that have paths, connections or sockets at the ingest server.
public struct OtherInputs: Sendable {
  /// Answers the HTTP paths of OTLP; nil: there are no such paths.
  let otlp: OTLPInput?
  let forward: ForwardInput?
  let statsd: StatsdInput?
  let syslog: SyslogInput?

  /// There are no such paths and sockets.
  public init() { (otlp, forward, statsd, syslog) = (nil, nil, nil, nil) }

  /// - Parameter snapshot: the configuration in force.
  public init(log: Logger, snapshot: @escaping @Sendable () -> Snapshot) {
    otlp = OTLPInput(snapshot: snapshot)
    forward = ForwardInput(log: log, snapshot: snapshot)
    statsd = StatsdInput(log: log, snapshot: snapshot)
    syslog = SyslogInput(log: log, snapshot: snapshot)
  }

  /// The state of a new connection; nil: it speaks lines or HTTP.
  func makeStream(_ entrance: Entrance) -> (any MessageStream)? {
    if entrance.isForward { return forward?.makeStream(isTCP: entrance.isTCP) }
    return entrance.isSyslog ? SyslogStream() : nil
  }

  /// Answers a request of a connection. - Returns: the input's name in counters, and what became of messages, too.
  fileprivate func answer(
    _ request: InputRequest, _ entrance: Entrance, from peer: ReportingPeer, to sink: any SubmissionSink
  ) async -> (answer: InputAnswer, input: String, counts: [IngestCounters.Message.Outcome: Int])? {
    if entrance.isForward, let forward {
      return (await forward.answer(request, from: peer, to: sink), ForwardInput.name, [:])
    }
    if entrance.isSyslog, let syslog {
      let (answer, counts) = await syslog.answer(request, from: peer, to: sink)
      return (answer, SyslogInput.name, counts)
    }
    guard let otlp else { return nil }
    return (await otlp.answer(request, from: peer, to: sink), otlp.name(of: request), [:])
  }

  /// Takes what came to a socket for datagrams. - Returns: what became of it.
  func take(
    _ datagrams: [Datagram], _ entrance: Entrance, to sink: any SubmissionSink
  ) async -> [IngestCounters.Message.Outcome: Int] {
    if entrance.isSyslog { return await syslog?.take(datagrams, to: sink) ?? [:] }
    return await statsd?.take(datagrams, to: sink) ?? [:]
  }
}

// MARK: - Requests

extension IngestServer {
  /// Counts a request of an input that has no connection here.
  public func count(_ result: IngestCounters.InputResult) { counts.inputRequests[log.told(result), default: 0] += 1 }

  /// Has another input answer a request; the connection waits for it.
  func hand(_ request: InputRequest, of connection: IngestConnection) {
    guard let session = connection.conversation?.value.session else { return }
    if let program = session.unitProgram { sessions.set(program, of: connection.id, now: time.uptime) }
    let peer = session.peer
    let (id, entrance, inputs) = (connection.id, connection.entrance, otherInputs)
    Task {
      guard let (answer, input, messages) = await inputs.answer(request, entrance, from: peer, to: self) else { return }
      counts.add(messages, of: input)
      answered(id, answer, input: input)
    }
  }

  /// Counts a client that speaks another protocol, and names it to those who follow.
  func tell(_ foreign: ForeignProtocol, of connection: IngestConnection) {
    connection.isForeignTold = true
    counts.foreignProtocols[foreign, default: 0] += 1
    guard feed.hasFollowers else { return }
    var report = TailReport()
    (report.outcome, report.code) = ("refused", foreign.refusal.code.rawValue)
    report.foreign = foreign.title
    report.peer = connection.conversation?.value.session.peer.title ?? "user \(connection.userID)"
    tell([report])
  }

  /// Writes down which answers are lost, when all connections have ended.
  func noteLostAnswers() async {
    let notes = [await otherInputs.otlp?.lastNote(), await otherInputs.forward?.lastNote()].compactMap { $0 }
    if notes.isEmpty { return }
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      sink.append([], notes: notes) { _ in done.resume() }
    }
  }

  private func answered(_ id: Int, _ answer: InputAnswer, input: String) {
    count(.init(input: input, status: answer.status))
    guard let connection = connections[id] else { return }
    connection.finish(answer)
    advance(connection)
    endRound()
  }
}

extension Logger {
  /// Names a limit that a request met.
  fileprivate func told(_ result: IngestCounters.InputResult) -> IngestCounters.InputResult {
    if result.status == 413 {
      fault("ingest.limit.\(result.input)", "requests are larger than is taken", ["input": result.input])
    }
    return result
  }

  /// Names types that were not taken.
  func told(_ tally: IngestTally) -> IngestTally {
    if tally.otherTypes > 0 {
      fault("ingest.types", "reports become the type `other`: their own is no name, or one more than a pattern takes")
    }
    return tally
  }
}

/// The purpose of a listening socket.
enum Entrance: Hashable {
  /// The ingest socket: lines or HTTP.
  case reports
  /// OTLP over HTTP, on TCP.
  case otlp
  /// Fluent's forward protocol.
  case forwardSocket, forwardTCP
  /// StatsD, in datagrams.
  case statsdSocket, statsdUDP
  /// Syslog, in datagrams and over TCP.
  case syslogSocket, syslogUDP, syslogTCP

  var isTCP: Bool { [.otlp, .forwardTCP, .syslogTCP].contains(self) }
  var isUDP: Bool { self == .statsdUDP || self == .syslogUDP }
  var isForward: Bool { self == .forwardSocket || self == .forwardTCP }
  var isSyslog: Bool { [.syslogSocket, .syslogUDP, .syslogTCP].contains(self) }
  var isDatagram: Bool { isUDP || self == .statsdSocket || self == .syslogSocket }

  /// The key of its address.
  var key: String {
    switch self {
    case .reports: "ingest.socket"
    case .otlp: "otlp.listen"
    case .forwardSocket: "forward.socket"
    case .forwardTCP: "forward.listen"
    case .statsdSocket: "statsd.socket"
    case .statsdUDP: "statsd.listen"
    case .syslogSocket: "syslog.socket"
    case .syslogUDP, .syslogTCP: "syslog.listen"
    }
  }

  /// The addresses that a configuration opens, beside the ingest socket.
  static func addresses(_ daemon: DaemonConfiguration) -> [Entrance: String] {
    var result: [Entrance: String] = [:]
    result[.otlp] = daemon.otlp.listen
    result[.forwardSocket] = daemon.forward.socket
    result[.forwardTCP] = daemon.forward.listen
    (result[.statsdSocket], result[.statsdUDP]) = (daemon.statsd.socket, daemon.statsd.listen)
    result[.syslogSocket] = daemon.syslog.socket
    (result[.syslogUDP], result[.syslogTCP]) = (daemon.syslog.listen, daemon.syslog.listen)
    return result
  }

  /// - Parameter daemon: says whose the file of a Unix socket is.
  func listen(on address: String, _ daemon: DaemonConfiguration) throws(SocketError) -> any ConnectionListener {
    if isTCP || isUDP { return try LoopbackListener(address: address, isDatagram: isUDP) }
    return try UnixListener(
      path: address, mode: daemon.ingest.mode, group: daemon.ingest.group, isDatagram: isDatagram)
  }

  /// The user at the other end of a connection, as the kernel says; nil: it is gone.
  func userID(of descriptor: Int32) -> UInt32? {
    guard isTCP else { return PeerCredentials(of: descriptor)?.userID }
    var userID: UInt32 = 0
    return prism_tcp_peer_user(descriptor, &userID) == 0 ? userID : nil
  }
}

/// The listening sockets beside the ingest socket.
struct Entrances {
  /// By their numbers in the loop.
  var open: [Int: OpenEntrance] = [:]
  /// Addresses that other programs had at the start.
  private(set) var awaited: [Entrance: String] = [:]

  func isOpen(_ entrance: Entrance, _ address: String) -> Bool {
    open.values.contains { $0.entrance == entrance && $0.listener.path == address }
  }

  mutating func wait(for entrance: Entrance, _ address: String, _ cause: SocketError, _ log: Logger) {
    awaited[entrance] = address
    log.fault(
      "listen.\(entrance)", "an input can't listen; it is tried again", ["key": entrance.key, "cause": "\(cause)"],
      level: .error)
  }

  mutating func endWait(_ entrance: Entrance, _ log: Logger) {
    awaited[entrance] = nil
    log.faultEnded("listen.\(entrance)", "an input has its address, or needs it no more", ["key": entrance.key])
  }
}

struct OpenEntrance {
  /// In the loop.
  let id: Int
  let entrance: Entrance
  let listener: any ConnectionListener
  /// nil: it is a socket for connections.
  let datagrams: DatagramQueue?
  var watch: SocketLoop.Watch

  fileprivate init(
    id: Int, _ entrance: Entrance, on address: String, _ daemon: DaemonConfiguration, of server: IngestServer
  ) throws(SocketError) {
    (self.id, self.entrance, listener) = (id, entrance, try entrance.listen(on: address, daemon))
    datagrams = entrance.isDatagram ? DatagramQueue(id, entrance, listener.descriptor, of: server) : nil
    guard let watch = server.loop.watch(listener.descriptor, id: id, reads: false) else {
      let code = errno
      listener.close()
      throw .system("watch", path: address, errno: code)
    }
    self.watch = watch
  }

  /// Takes datagrams that came. - Returns: false: it is a socket for connections.
  @discardableResult func receive() -> Bool {
    datagrams?.assumeIsolated { $0.receive() }
    return datagrams != nil
  }

  func close() {
    watch.end()
    listener.close()
  }
}

/// An address that can't be listened on, with the key that names it.
public struct EntranceFault: Error, Sendable {
  /// `otlp.listen`.
  public let key: String
  /// Why not, and what to do.
  public let reason: SocketError
}
