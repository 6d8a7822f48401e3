import PrismBase
import PrismConfig
import PrismEngine
import PrismInputs
import PrismLinux

/// The ingest server, and the inputs that look for reports by themselves and hand them to it.
struct Inputs: Sendable {
  let server: IngestServer
  private let crashSpool: CrashSpool
  private let host: HostInput
  private let journal: JournalInput
  private let conflicts: ConflictReports
  private let sessions: SessionReports
  /// The server's commands, whose results may be reports.
  let commands: CommandHandler

  /// - Parameter configPath: of the daemon's file.
  init(_ server: IngestServer, engine: Engine, configPath: String, log: Logger) {
    self.server = server
    let hub = engine.hub
    conflicts = ConflictReports(sink: server, configuration: { hub.current }, log: log)
    sessions = SessionReports(server: server, configuration: { hub.current }, log: log)
    commands = CommandHandler(
      engine: engine, tools: MachineCommands(sink: server) { (hub.current, configPath) })
    crashSpool = CrashSpool(sink: server, log: log) { result in Task { await server.count(result) } }
    host = HostInput(sink: server, log: log)
    journal = JournalInput(sink: server, log: log)
  }

  /// Reports are taken from now on.
  func start(_ daemon: DaemonConfiguration, clashes: AsyncStream<RecordClashNews>) async {
    await server.start()
    await conflicts.start(clashes)
    await sessions.start()
    await commands.start()
    await follow(daemon)
  }

  /// Looks for reports as it is configured now.
  func follow(_ daemon: DaemonConfiguration) async {
    await crashSpool.follow(daemon.crashSpool)
    await host.follow(daemon.host)
    await journal.follow(daemon.journal)
    await commands.lookAtAll()
  }

  /// Reports that are on their way are answered first.
  func stop() async {
    await commands.stop()
    await conflicts.stop()
    await journal.stop()
    await host.stop()
    await crashSpool.stop()
    await sessions.stop()
    await server.stop()
  }
}
