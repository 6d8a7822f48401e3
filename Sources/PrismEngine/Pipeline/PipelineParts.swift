import PrismBase
import PrismStore

/// The parts that every namespace's pipeline shares.
struct PipelineParts: Sendable {
  var store: ReportStore
  var output: any Output
  var dictionaries: DictionaryFetch
  var network: any NetworkMonitor
  var builder: PacketBuilder
  var puller: RecordPuller
  var keys: KeyUse { builder.keys }
  /// Packets that one namespace and kind may have on their way at a time.
  var packetsMax: Int
  var time: any TimeSource
  var random: Randomness
  var log: Logger
  /// Takes the versions of remote configuration that packets' answers name.
  var announcements: AsyncStream<Int64>.Continuation
  /// Takes conflicts of records.
  var clashes: AsyncStream<RecordClashNews>.Continuation
}
