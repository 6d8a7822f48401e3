import PrismBase
import PrismStore

/// What every namespace's pipeline works with.
struct PipelineParts: Sendable {
  var store: ReportStore
  var transport: any Transport
  var network: any NetworkMonitor
  var builder: PacketBuilder
  var time: any TimeSource
  var random: Randomness
  var log: Logger
  /// Takes the versions of remote configuration that packets' answers name.
  var announcements: AsyncStream<Int64>.Continuation
}
