import PrismBase
import PrismConfig
import PrismInputs
import PrismLinux

/// The inputs that look for reports by themselves.
struct FollowedInputs: Sendable {
  private let crashSpool: CrashSpool
  private let host: HostInput
  private let journal: JournalInput

  init(_ ingest: IngestServer, log: Logger) {
    crashSpool = CrashSpool(sink: ingest, log: log) { result in Task { await ingest.count(result) } }
    host = HostInput(sink: ingest, log: log)
    journal = JournalInput(sink: ingest, log: log)
  }

  /// Begins, or goes on as it is configured now.
  func follow(_ daemon: DaemonConfiguration) async {
    await crashSpool.follow(daemon.crashSpool)
    await host.follow(daemon.host)
    await journal.follow(daemon.journal)
  }

  /// What is on its way is answered first.
  func stop() async {
    await journal.stop()
    await host.stop()
    await crashSpool.stop()
  }
}
