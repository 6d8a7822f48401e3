import PrismAdmission
import PrismBase
import PrismConfig
import PrismCurl
import PrismEngine
import PrismHTTP
import PrismLinux
import PrismPacket
import PrismProtocol
import PrismRecovery
import PrismStore

/// Builds the parts, wires them, and runs them until a signal says stop.
final class Daemon: Sendable {
  private let log: Logger
  private let reloader: Reloader
  private let remote: RemoteConfigurationClient
  private let events: AsyncStream<SignalMonitor.Event>
  private let signals: SignalRoute
  private let tell: @Sendable (SignalMonitor.Event) -> Void
  private let engine: Engine
  private let network: NetlinkMonitor
  private let inputs: Inputs
  private let control: ControlServer
  private let metrics: MetricsServer
  private let notifier = ServiceNotifier.fromEnvironment()

  init(
    _ loaded: LoadedConfiguration, configPath: String, files: NamespaceFiles, signals: SignalRoute, log: Logger
  ) async throws(StartFailure) {
    let daemon = loaded.snapshot.daemon
    log.set(level: daemon.logLevel, format: daemon.logFormat)
    let (events, continuation) = AsyncStream.makeStream(of: SignalMonitor.Event.self)
    (self.log, self.events, self.signals, tell) = (log, events, signals, { continuation.yield($0) })
    let deviceID = try Self.deviceID(configured: daemon.deviceId)
    let store = try await Self.openStore(daemon, signals, log)
    let filters = FilterTools(hash: try FilterSecret.keyedHash(folder: daemon.state))
    let cache = StateFile(folder: daemon.state, name: "remote.json")
    let start = await RemoteStart.recall(files: loaded, cache: cache, time: SystemTime(), log: log)
    let openFilesMax = DescriptorLimit.raise()
    let hub = ConfigurationHub(start.current.snapshot)
    let transfersMax = DescriptorLimit.uploadsMax(of: openFilesMax)
    let transport = CurlTransport(downloads: daemon.state, transfersMax: transfersMax)
    network = NetlinkMonitor(daemon.network, log: log)
    await network.start()
    engine = Engine(
      store: store, hub: hub, transport: transport, downloads: transport, network: network, deviceID: deviceID,
      keys: KeyUse(file: StateFile(folder: daemon.state, name: "key-use"), log: log),
      packetsMax: max(1, min(64, transfersMax / 4)), log: log, rest: ResidentMemory.giveBack)
    let stack = ConfigurationStack(engine: engine, start: start)
    remote = RemoteConfigurationClient(
      start, engine: engine, stack: stack, parts: .init(source: transport, cache: cache, deviceID: deviceID))
    do throws(SocketError) {
      let inherited = try InheritedListeners(log: log)
      let ingest = try IngestServer(
        listener: try inherited.listener(daemon.ingest.socket, mode: daemon.ingest.mode, group: daemon.ingest.group),
        sink: engine.sink, snapshot: { hub.current }, facts: HostFacts.read(deviceID: deviceID),
        version: version, feed: engine.feed, inputs: OtherInputs(log: log) { hub.current }, filters: filters,
        files: files, connectionsMax: Self.connectionsMax(of: openFilesMax, daemon, log), log: log)
      inputs = Inputs(ingest, engine: engine, configPath: configPath, log: log)
      let sources = MetricsServer.Sources(
        engine: engine, version: version, ingest: { await ingest.counters },
        remote: { [remote] in await remote.figures }, commands: { [inputs] in await inputs.commands.counts })
      metrics = MetricsServer(sources, log: log)
      control = try ControlServer(
        listener: try inherited.listener(daemon.control.socket, mode: 0o660, group: daemon.control.group),
        group: daemon.control.group, readers: daemon.control.readers, log: log)
    } catch { throw StartFailure(exitCode: error.exitCode, message: error.description) }
    reloader = Reloader(
      configPath: configPath, engine: engine, stack: stack, remote: remote,
      edges: ReloadableListeners(
        inputs: inputs, control: control, metrics: metrics, network: network, log: log,
        hasAutomaticDeviceID: !deviceID.isEmpty),
      notifier: notifier, watcher: FileWatcher(log: log) { continuation.yield(.reload) }, log: log)
    try await listen(daemon)
  }

  private func listen(_ daemon: DaemonConfiguration) async throws(StartFailure) {
    engine.hub.observe { [weak server = inputs.server] in Task { await server?.configurationChanged() } }
    await engine.observeRecords { [weak server = inputs.server, weak commands = inputs.commands] in
      server?.recordsChanged($0)
      commands?.changed($0)
    }
    do {
      try await engine.start()
      try await metrics.listen(on: daemon.metricsListen, isAtStart: true)
      try await inputs.server.listen(daemon, isAtStart: true)
    } catch let error as EntranceFault {
      throw StartFailure(exitCode: error.reason.exitCode, message: "\(error.key): \(error.reason)")
    } catch let error as HTTPServerError {
      throw StartFailure(exitCode: .unavailable, message: "metrics.listen: \(error)")
    } catch {
      throw StartFailure(exitCode: .unavailable, message: "\(error)")
    }
  }

  /// Serves until SIGTERM or SIGINT; SIGHUP and changed files reload.
  func runUntilStopped() async {
    signals.serve(tell)
    await reloader.watch()
    // Before the first report is taken: from then on the database holds what no other one has.
    await engine.markReady()
    await inputs.start(engine.hub.current.daemon, clashes: engine.clashes)
    let (server, reloader) = (inputs.server, reloader)
    let handler = ControlHandler(
      engine: engine, version: version, configuration: reloader, remote: remote,
      counts: {
        let counters = await server.counters
        let foreign = counters.foreignProtocols.map { ("foreign \($0.key.rawValue)", $0.value) }
        let large = counters.inputRequests.filter { $0.key.status == 413 }.map {
          ("too large \($0.key.input)", $0.value)
        }
        // Cut messages are stored.
        let lost = counters.messages.filter { ![.stored, .refused, .cut].contains($0.key.outcome) }.map {
          ("\($0.key.outcome.rawValue) \($0.key.input)", $0.value)
        }
        let refused = counters.tally.refused.map { ($0.key.rawValue, $0.value) } + foreign + large + lost
        return (Dictionary(uniqueKeysWithValues: refused), counters.tally.repeated)
      }, process: { .current() })
    await metrics.show(handler)
    await control.start { handler.handle($0, from: $1) }
    await reloader.tellReady()
    await reloader.logNextStep()
    await remote.start()
    log.info("prismd \(version) takes reports", ["ingest": engine.hub.current.daemon.ingest.socket])
    let listening = Task { [hub = engine.hub] in await reloader.edges.listenAgain { hub.current.daemon } }
    let watchdog = notifier.watchdogInterval.map { interval in Task { await feedWatchdog(every: interval / 2) } }
    for await event in events {
      if event == .stop { break }
      _ = await reloader.reload()
    }
    for task in [listening, watchdog] { task?.cancel() }
    await stop()
  }

  private func stop() async {
    notifier.stopping(status: "finishing what is on its way")
    await inputs.stop()
    await remote.stop()
    await metrics.stop()
    await engine.stop()
    await control.stop()
    await network.stop()
    log.info("prismd stopped")
  }

  /// Only while the store's queue and the pipelines really turn.
  private func feedWatchdog(every interval: Duration) async {
    while !Task.isCancelled {
      await engine.turns()
      notifier.watchdog()
      do { try await SystemTime().sleep(for: interval) } catch { return }  // the daemon stops
    }
  }

  // MARK: Building

  private static func openStore(
    _ daemon: DaemonConfiguration, _ signals: SignalRoute, _ log: Logger
  ) async throws(StartFailure) -> ReportStore {
    do throws(StateFolder.Fault) { try StateFolder.prepare(daemon.state) } catch {
      throw StartFailure(
        exitCode: error.isMode ? .configuration : .cannotCreate, message: "state: \(error.description)")
    }
    var options = StoreOptions(folder: daemon.state)
    options.durability = daemon.durability == .full ? .full : .normal
    options.log = log
    let marker = StartMarker(folder: daemon.state)
    options.marker = marker
    signals.begin(marker)
    do { return try await ReportStore.open(options) } catch {
      if case .folder = error { throw StartFailure(exitCode: .cannotCreate, message: error.description) }
      throw StartFailure(exitCode: .unavailable, message: error.description)
    }
  }

  /// The part of the limit of open files for connections.
  private static func connectionsMax(of limit: Int, _ daemon: DaemonConfiguration, _ log: Logger) -> Int {
    let connections = DescriptorLimit.connectionsMax(of: limit)
    if connections < daemon.ingest.maxConnections {
      log.warning(
        "the limit of open files leaves fewer connections than ingest.maxConnections; raise it (systemd: LimitNOFILE=)",
        ["openFiles": "\(limit)", "connections": "\(connections)"])
    }
    return connections
  }

  /// The derived id; empty if it can't be derived and is not needed.
  private static func deviceID(configured: String?) throws(StartFailure) -> String {
    do throws(PacketError) {
      if let id = try DeviceID.ofThisMachine() { return id }
    } catch {
      throw StartFailure(exitCode: .software, message: "the device id can't be derived: \(error.rawValue)")
    }
    if configured != nil { return "" }
    throw StartFailure(exitCode: .configuration, message: "device.id: \(noAutomaticDeviceID)")
  }

}

/// The sockets that systemd passed to the daemon. A socket that it did not pass is opened by the daemon itself.
struct InheritedListeners {
  private let listeners: [UnixListener]
  private let log: Logger

  init(log: Logger) throws(SocketError) { (listeners, self.log) = (try SocketActivation.takeListeners(), log) }

  /// - Parameter mode: the rights of the socket's file.
  func listener(_ path: String, mode: UInt32, group: String?) throws(SocketError) -> UnixListener {
    guard let listener = listeners.first(where: { $0.path == path }) else {
      return try UnixListener(path: path, mode: mode, group: group)
    }
    if !(try listener.update(mode: mode, group: group)) {
      log.warning("the socket's group can't be set; name it in prismd.socket, SocketGroup=", ["path": path])
    }
    return listener
  }
}
