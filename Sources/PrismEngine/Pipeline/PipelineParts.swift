import PrismBase
import PrismStore

/// The parts that every namespace's pipeline shares.
struct PipelineParts: Sendable {
  var store: ReportStore
  var output: any Output
  var network: any NetworkMonitor
  var builder: PacketBuilder
  var time: any TimeSource
  var random: Randomness
  var log: Logger
  /// Takes the versions of remote configuration that packets' answers name.
  var announcements: AsyncStream<Int64>.Continuation
}
