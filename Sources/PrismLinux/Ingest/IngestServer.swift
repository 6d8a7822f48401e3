import Glibc
public import PrismBase
public import PrismConfig
public import PrismEngine
import PrismProtocol

/// The ingest socket (docs/ingest-protocol.md): takes reports from any number of clients to their commit, and answers
/// each.
///
/// One thread reads and admits; while one commit runs, what arrives piles up for the next one, and whoever committed
/// answers. So one sync of the disk serves all that came meanwhile, and nobody waits for a timer or for a thread to wake
/// up. What may be held before its commit is bounded (`PendingBudget`); past it, connections are not read from, and their
/// clients feel the socket's backpressure.
public actor IngestServer {
  /// How long a request may stop in its middle, and how long a client may take to read its last answers.
  public static let stallMax: Duration = .seconds(30)
  /// How long `stop` waits for clients to read their answers.
  public static let stopMax: Duration = .seconds(5)
  /// What one commit takes: transactions of more rows are no faster, and everybody waits for them.
  static let commitRowsMax = 4000
  static let commitBytesMax = 4 * 1024 * 1024
  private static let readBytes = 128 * 1024
  private static let acceptsPerEvent = 64
  /// What the loop calls the listening socket; connections are numbered from 1.
  private static let listenerID = 0

  private enum State { case idle, serving, stopping, stopped }

  private let loop: SocketLoop
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let listener: UnixListener
  private let sink: any ReportSink
  private let snapshot: @Sendable () -> Snapshot
  private let facts: HostFacts
  private let version: String
  let time: any TimeSource
  private let log: Logger
  private let feed: ReportFeed

  private var state = State.idle
  private var rules: AdmissionRules
  private var accepting: SocketLoop.Watch
  var connections: [Int: IngestConnection] = [:]
  private var lastID = 0
  private var buffer = [UInt8](repeating: 0, count: readBytes)
  private var budget: PendingBudget
  private var composer = CommitComposer()
  private var isCommitting = false
  /// Connections that have reports which the next commit may take.
  private var unsealed: [Int] = []
  private var waitingForBudget: [Int] = []
  var isReaping = false
  private var stopWaiters: [CheckedContinuation<Void, Never>] = []
  private var counts = IngestCounters()

  /// - Parameter snapshot: the configuration in force; asked whenever something arrives.
  /// - Parameter version: of the daemon, told to clients that greet.
  /// - Parameter feed: told of reports that are refused before they come to `sink`.
  /// - Throws: `system`.
  public init(
    listener: UnixListener, sink: any ReportSink, snapshot: @escaping @Sendable () -> Snapshot, facts: HostFacts,
    version: String, feed: ReportFeed = ReportFeed(), budget: PendingBudget = PendingBudget(),
    time: any TimeSource = SystemTime(), log: Logger
  ) throws(SocketError) {
    self.feed = feed
    loop = try SocketLoop(for: listener.path)
    accepting = try loop.watch(listener, id: Self.listenerID)
    (self.listener, self.sink, self.snapshot, self.facts) = (listener, sink, snapshot, facts)
    (self.version, self.budget, self.time, self.log) = (version, budget, time, log)
    rules = AdmissionRules(snapshot())
  }

  public var counters: IngestCounters {
    var result = counts
    (result.connections, result.pendingBytes) = (connections.count, budget.bytes)
    return result
  }

  /// Begins to accept. Call it once.
  public func start() {
    guard state == .idle else { return }
    state = .serving
    loop.start { [weak self] ready in self?.assumeIsolated { $0.serve(ready) } }
    accepting.set(reads: true, writes: false)
  }

  /// From a reload: for connections from now on. - Throws: `unknownGroup`, `system`; then all stays as it was.
  public func update(mode: UInt32, group: String?) throws(SocketError) {
    try listener.update(mode: mode, group: group)
  }

  /// Ends: no new connections, what was taken is committed and answered, what comes meanwhile is answered `busy`, then
  /// everything is closed. Returns when it is, `stopMax` after it began at the latest.
  public func stop() async {
    switch state {
    case .idle, .serving: beginStop()
    case .stopping: break
    case .stopped: return
    }
    if !connections.isEmpty { await withCheckedContinuation { stopWaiters.append($0) } }
    state = .stopped
  }

  private func beginStop() {
    accepting.end()
    listener.close()
    state = .stopping
    for connection in connections.values { connection.conversation.isStopping = true }
    for id in connections.keys.sorted() { readable(id) }  // what came before is answered too
    for connection in connections.values { advance(connection) }
    Task {
      try? await time.sleep(for: Self.stopMax)  // cancelled: then at once
      for connection in connections.values { abandon(connection) }
    }
  }
}

// MARK: - Accepting

extension IngestServer {
  private func acceptAll() {
    for _ in 0..<Self.acceptsPerEvent {
      switch listener.accept(refuse: { refuse($0) }) {
      case .connection(let descriptor): admit(descriptor)
      case .refused: shortage("no descriptor is left")
      case .nothing: return log.faultEnded("ingest.accept", "connections are accepted again")
      case .exhausted(let code):
        shortage(String(cString: strerror(code)))
        return pauseAccepting()
      }
    }
  }

  private func shortage(_ reason: String) {
    log.fault(
      "ingest.accept", "connections are refused; raise the limit of open files (systemd: LimitNOFILE=)",
      ["reason": reason], level: .error)
  }

  /// Not even a refusal is possible: looking again at once would spin.
  private func pauseAccepting() {
    accepting.set(reads: false, writes: false)
    Task {
      try? await time.sleep(for: .seconds(1))  // cancelled: then at once
      if state == .serving { accepting.set(reads: true, writes: false) }
    }
  }

  private func admit(_ descriptor: Int32) {
    guard let peer = ReportingPeer(of: descriptor) else {
      close(descriptor)
      return
    }
    takeRules()
    let limits = snapshot().daemon.ingest
    guard connections.count < limits.maxConnections,
      budget.connections(of: peer.userID) < limits.maxConnectionsPerUser
    else {
      refuse(descriptor)
      close(descriptor)
      return
    }
    counts.acceptedConnections += 1
    open(descriptor, peer)
  }

  private func open(_ descriptor: Int32, _ peer: ReportingPeer) {
    lastID += 1
    let id = lastID
    let session = Session(rules: rules, host: facts, peer: peer, sessionID: Self.sessionID())
    let connection = IngestConnection(
      id: id, peer: peer, descriptor: SharedDescriptor(descriptor),
      conversation: IngestConversation(session: session, version: version))
    guard connection.activate(in: loop) else { return shortage(String(cString: strerror(errno))) }
    connections[id] = connection
    budget.open(id, user: peer.userID)
  }

  /// Answers `busy` in the protocol that the client speaks, if it has begun to speak. It doesn't close.
  private func refuse(_ descriptor: Int32) {
    counts.refusedConnections += 1
    let refusal = Refusal(.busy, "too many connections; try again", retryMilliseconds: 1000)
    let isHTTP = SharedDescriptor.peek(descriptor)?.isASCIILetter == true
    let answer = isHTTP ? HTTPExchange.response(to: refusal) : AnswerText.refused(refusal)
    var unread = [UInt8](repeating: 0, count: 16_384)
    // What is left unread when it is closed would reset the connection; an answer that can't be sent is nobody's loss.
    _ = unread.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    _ = answer.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  /// 16 hexadecimal digits of chance.
  private static func sessionID() -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  private func takeRules() {
    let current = snapshot()
    if current.generation != rules.generation { rules = AdmissionRules(current) }
  }
}

// MARK: - Reading

extension IngestServer {
  /// One that hung up while nothing is read from it is no news: what it sent is committed all the same.
  private func serve(_ ready: [Int]) {
    for id in ready {
      if id == Self.listenerID && state == .serving { acceptAll() }  // a job may have stopped it since
      if connections[id]?.wantsToRead == true { readable(id) }
      if let connection = connections[id], connection.wantsToWrite { advance(connection) }
    }
  }

  private func readable(_ id: Int) {
    guard let connection = connections[id], !connection.isGone, !connection.pauses.contains(.ended) else { return }
    takeRules()
    guard budget.mayRead(id) else { return waitForBudget(connection) }
    let count = connection.descriptor.read(into: &buffer)
    if count < 0 && errno == EAGAIN { return }
    connection.conversation.take(rules)
    connection.conversation.isFollowed = feed.hasFollowers
    if count > 0 {
      consume(count, connection)
    } else {
      connection.endInput(unixMilliseconds: time.unixMilliseconds)
    }
    advance(connection)
  }

  private func consume(_ count: Int, _ connection: IngestConnection) {
    var chunk: [UInt8] = []
    swap(&chunk, &buffer)  // so that nothing else can touch it meanwhile, and nothing is copied
    connection.consume(chunk.span.extracting(0..<count), unixMilliseconds: time.unixMilliseconds)
    swap(&chunk, &buffer)
  }

  private func waitForBudget(_ connection: IngestConnection) {
    connection.pauses.insert(.budget)
    guard !connection.isWaitingForBudget else { return }
    connection.isWaitingForBudget = true
    waitingForBudget.append(connection.id)
  }

  private func resumeReading() {
    let waiting = waitingForBudget
    waitingForBudget = []
    for id in waiting {
      guard let connection = connections[id], !connection.isGone else { continue }
      if budget.mayRead(id) {
        connection.isWaitingForBudget = false
        connection.pauses.remove(.budget)
        watch(connection)
      } else {
        waitingForBudget.append(id)
      }
    }
  }

  /// After anything happened to a connection: its answers, its reports, its deadline, its end.
  private func advance(_ connection: IngestConnection) {
    repeat {
      connection.send()
    } while connection.proceed(unixMilliseconds: time.unixMilliseconds)
    if connection.isGone, !connection.pauses.contains(.ended) {
      connection.endInput(unixMilliseconds: time.unixMilliseconds)
    }
    counts.tally.add(connection.conversation.takeTally())
    if connection.conversation.isFollowed { tellRefused(connection) }
    account(connection)
    if connection.conversation.batchBytes > 0, !connection.isUnsealed {
      connection.isUnsealed = true
      unsealed.append(connection.id)
    }
    commit()
    watch(connection)
    closeIfDone(connection)
  }

  private func tellRefused(_ connection: IngestConnection) {
    let now = time.unixMilliseconds
    let events = connection.conversation.takeRefused().map {
      ReportEvent(time: now, outcome: .refused($0.code), name: $0.name)
    }
    if !events.isEmpty { feed.publish(events) }
  }

  private func account(_ connection: IngestConnection) {
    budget.set(
      connection.id, partialBytes: connection.partialBytes, batchBytes: connection.conversation.batchBytes)
  }

  private func closeIfDone(_ connection: IngestConnection) {
    guard connection.isGone || connection.isSettled else { return }
    let isOver = connection.pauses.contains(.ended) || state == .stopping
    if connection.isGone ? connection.conversation.isSettled : isOver { return remove(connection) }
    if connection.mustClose && !connection.isWriteShut {
      connection.shutWriting()  // and what still comes is read away, or closing would take the answer from the client
      watch(connection)
    }
  }

  /// Nobody reads its answers any more, or it must go.
  func abandon(_ connection: IngestConnection) {
    connection.close()
    advance(connection)
  }

  private func remove(_ connection: IngestConnection) {
    connection.close()
    budget.close(connection.id)
    connections[connection.id] = nil
    resumeReading()
    guard connections.isEmpty, state == .stopping else { return }
    for waiter in stopWaiters { waiter.resume() }
    stopWaiters = []
  }
}

// MARK: - Committing

extension IngestServer {
  /// One commit after the other, as long as something waits.
  private func commit() {
    guard !isCommitting else { return }
    collectBatches()
    guard !composer.isEmpty else { return }
    isCommitting = true
    let entries = composer.take(rowsMax: Self.commitRowsMax, bytesMax: Self.commitBytesMax)
    sink.append(entries.map(\.batch)) { outcome in
      self.loop.enter { self.assumeIsolated { $0.committed(entries, outcome) } }
    }
  }

  private func committed(_ entries: [CommitComposer.Entry], _ outcome: CommitOutcome) {
    settle(entries, outcome)
    isCommitting = false
    commit()
  }

  private func collectBatches() {
    let ready = unsealed
    unsealed = []
    for id in ready {
      guard let connection = connections[id] else { continue }
      connection.isUnsealed = false
      for batch in connection.conversation.takeBatches() {
        composer.add(batch, connection: id, user: connection.peer.userID)
      }
    }
  }

  private func settle(_ entries: [CommitComposer.Entry], _ outcome: CommitOutcome) {
    var touched: [Int] = []
    for (index, entry) in entries.enumerated() {
      guard let connection = connections[entry.connection] else { continue }
      switch outcome {
      case .committed(let batches):
        connection.conversation.settle(index < batches.count ? batches[index] : nil, failure: nil)
      case .failed(let refusal): connection.conversation.settle(nil, failure: refusal)
      }
      if touched.last != entry.connection { touched.append(entry.connection) }
    }
    for id in Set(touched).sorted() {
      guard let connection = connections[id] else { continue }
      connection.conversation.flushAnswers()
      advance(connection)
    }
    resumeReading()
  }
}
