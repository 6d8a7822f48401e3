import Glibc
public import PrismAdmission
public import PrismBase
public import PrismConfig
public import PrismProtocol

/// The ingest socket (docs/ingest-protocol.md): takes reports from any number of clients to their commit, and answers
/// each.
///
/// One thread reads and admits. While a commit runs, new reports are collected for the next one, and the thread that
/// committed sends the answers. So one sync of the disk serves all of them, and no report waits for a timer or for a
/// thread to wake up. Connections with input are served in turns, shared by user (`WorkOrder`). The memory that clients
/// can cause is bounded (`PendingBudget`); past it, connections are not read from, and their clients feel the socket's
/// backpressure.
public actor IngestServer {
  /// How long a request may stop in its middle, and how long a client may leave its answers unread.
  public static let stallMax: Duration = .seconds(30)
  /// How long `stop` waits for clients to read their answers.
  public static let stopMax: Duration = .seconds(2)
  private static let readBytes = 64 * 1024
  /// The listening socket's number in the loop; connections are numbered from 1.
  static let listenerID = 0

  enum State { case idle, serving, stopping, stopped }

  let loop: SocketLoop
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let listener: UnixListener
  let sink: any ReportSink
  let snapshot: @Sendable () -> Snapshot
  var facts: HostFacts
  let version: String
  let connectionsMax: Int
  let time: any TimeSource
  let log: Logger
  let feed: ReportFeed

  var state = State.idle
  var rules: AdmissionRules
  var accepting: SocketLoop.Watch
  /// Each answers on its own paths, connections or sockets; nil: they are not opened.
  let otherInputs: OtherInputs
  /// Of all connections.
  let places = WatchPlaces()
  var entrances = Entrances()
  var connections: [Int: IngestConnection] = [:]
  var lastID = 0
  var buffer = [UInt8](repeating: 0, count: readBytes)
  var budget: PendingBudget
  var work = WorkOrder()
  var waitingForBudget: [Int] = []
  var composer = CommitComposer()
  var sessions = SessionBook()
  /// Connections that have reports which the next commit may take.
  var unsealed: [Int] = []
  /// A commit, and the task that closes stalled connections.
  var isUnderWay = (commit: false, reaping: false)
  /// Groups of other inputs, by the number that their memory and their turns are known by.
  var groups: [Int: PendingGroup] = [:]
  /// Those that wait for memory, by the same number.
  var roomWaiters: [Int: RoomWaiter] = [:]
  var stopWaiters: [CheckedContinuation<Void, Never>] = []
  var counts = IngestCounters()

  /// - Parameter snapshot: the configuration in force; asked whenever something arrives.
  /// - Parameter version: of the daemon, for the answer to a greeting.
  /// - Parameter feed: gets reports that are refused before they reach `sink`.
  /// - Parameter inputs: those that have paths, connections or sockets here.
  /// - Parameter filters: what the filters of types share.
  /// - Parameter files: where namespaces are configured.
  /// - Parameter connectionsMax: what the limit of open files leaves of `ingest.maxConnections`.
  /// - Throws: `system`.
  public init(
    listener: UnixListener, sink: any ReportSink, snapshot: @escaping @Sendable () -> Snapshot, facts: HostFacts,
    version: String, feed: ReportFeed = ReportFeed(), inputs: OtherInputs = OtherInputs(),
    filters: FilterTools = FilterTools(), files: NamespaceFiles = NamespaceFiles(), connectionsMax: Int = .max,
    time: any TimeSource = SystemTime(), log: Logger
  ) throws(SocketError) {
    (self.feed, otherInputs) = (feed, inputs)
    loop = try SocketLoop(for: listener.path)
    accepting = try loop.watch(listener, id: Self.listenerID)
    (self.listener, self.sink, self.snapshot, self.facts) = (listener, sink, snapshot, facts)
    (self.version, self.connectionsMax, self.time, self.log) = (version, connectionsMax, time, log)
    rules = AdmissionRules(snapshot(), tools: filters, files: files)
    budget = PendingBudget(bytesMax: rules.memoryBytesMax)
  }

  /// The counters since the start.
  public var counters: IngestCounters {
    for open in entrances.open.values { open.datagrams?.assumeIsolated { $0.noteDropped() } }
    var result = counts
    result.connections = connections.count
    (result.memoryBytes, result.memoryBytesMax) = (budget.bytes, budget.bytesMax)
    return result
  }

  /// Begins to accept. Call it once.
  public func start() {
    guard state == .idle else { return }
    state = .serving
    loop.start { [weak self] ready in self?.assumeIsolated { $0.serve(ready) } ?? false }
    watchEntrances(reads: true)
  }

  /// From a reload: for connections from now on. - Throws: `unknownGroup`, `system`; then all stays as it was.
  public func update(mode: UInt32, group: String?) throws(SocketError) {
    try listener.update(mode: mode, group: group)
    for open in entrances.open.values { try (open.listener as? UnixListener)?.update(mode: mode, group: group) }
  }

  // MARK: Watching

  /// Sends new switches to clients that watch a namespace. Call it when another configuration is in force.
  public func configurationChanged() { tellWatchers([]) }

  /// Sends changes to clients that watch their table. Call it on the store's queue, before the commit is answered.
  public nonisolated func recordsChanged(_ changes: [RecordTableChange]) {
    guard !places.isEmpty else { return }
    loop.enter { assumeIsolated { $0.tellWatchers(changes) } }
  }

  /// - Parameter changes: empty: the configuration changed.
  private func tellWatchers(_ changes: [RecordTableChange]) {
    takeRules()
    for connection in connections.values where connection.conversation?.value.isWatching == true {
      if connection.takes(changes, rules) || changes.isEmpty { advance(connection) }
    }
    endRound()
  }

  // MARK: Stopping

  /// Of a connection's last turn, so that many connections don't hold the end up.
  private static let stopTurn = 16 * 1024

  /// Ends: no new connections, what was taken is committed and answered, what comes meanwhile is answered `busy`, then
  /// everything is closed. Returns when it is, `stopMax` after it began at the latest.
  public func stop() async {
    if state == .serving {
      await DatagramQueue.end(entrances.open.values.compactMap(\.datagrams), within: Self.stopMax / 2, time)
    }
    switch state {
    case .idle, .serving: beginStop()
    case .stopping: break
    case .stopped: return
    }
    if !isEmpty { await withCheckedContinuation { stopWaiters.append($0) } }
    await noteLostAnswers()
    state = .stopped
  }

  /// Nothing is on its way any more.
  private var isEmpty: Bool { connections.isEmpty && groups.isEmpty }

  /// Ends `stop` when the last connection and the last group are gone.
  func endStopIfEmpty() {
    guard isEmpty, state == .stopping else { return }
    for waiter in stopWaiters { waiter.resume() }
    stopWaiters = []
  }

  private func beginStop() {
    accepting.end()
    listener.close()
    for id in entrances.open.keys.sorted() { endEntrance(id) }
    state = .stopping
    refuseRoom()
    for connection in connections.values { connection.conversation?.value.isStopping = true }
    for id in connections.keys.sorted() {
      if let connection = connections[id] { _ = turn(connection, Self.stopTurn) }  // what came before is answered too
    }
    endRound()
    for connection in connections.values {
      _ = connection.stopPolling()
      advance(connection)
    }
    Task {
      try? await time.sleep(for: Self.stopMax)  // cancelled: then at once
      for connection in connections.values { abandon(connection, because: .stopped) }
      endRound()
    }
  }
}
