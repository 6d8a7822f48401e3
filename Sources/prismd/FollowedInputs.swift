import PrismBase
import PrismConfig
import PrismLinux

/// The inputs that look for reports by themselves.
struct FollowedInputs: Sendable {
  private let crashSpool: CrashSpool
  private let host: HostInput

  init(_ ingest: IngestServer, log: Logger) {
    crashSpool = CrashSpool(sink: ingest, log: log) { result in Task { await ingest.count(result) } }
    host = HostInput(sink: ingest, log: log)
  }

  /// Begins, or goes on as it is configured now.
  func follow(_ daemon: DaemonConfiguration) async {
    await crashSpool.follow(daemon.crashSpool)
    await host.follow(daemon.host)
  }

  /// What is on its way is answered first.
  func stop() async {
    await host.stop()
    await crashSpool.stop()
  }
}
