import PrismBase
import PrismConfig
import PrismLinux

/// The inputs that look for reports by themselves.
struct FollowedInputs: Sendable {
  private let crashSpool: CrashSpool

  init(_ ingest: IngestServer, log: Logger) {
    crashSpool = CrashSpool(sink: ingest, log: log) { result in Task { await ingest.count(result) } }
  }

  /// Begins, or goes on as it is configured now.
  func follow(_ daemon: DaemonConfiguration) async { await crashSpool.follow(daemon.crashSpool) }

  /// What is on its way is answered first.
  func stop() async { await crashSpool.stop() }
}
