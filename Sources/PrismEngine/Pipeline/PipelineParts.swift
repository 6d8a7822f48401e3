import PrismBase
import PrismProtocol
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

struct PerKind<Value> {
  private var values: [Value]

  init(each value: (RowKind) -> Value) { values = RowKind.all.map(value) }

  subscript(kind: RowKind) -> Value {
    get { values[kind.number] }
    _modify { yield &values[kind.number] }
  }
}

extension PerKind: Sendable where Value: Sendable {}
extension PerKind: Equatable where Value: Equatable {}

/// The part of a pipeline that its children see (`RecordSynchronizer`, `CarryJob`, `IntentHandler`). Used on the pipeline's own turns only.
struct PipelineHost {
  let parts: PipelineParts
  let settings: () -> PipelineSettings
  let gates: (RowKind) -> Gates
  let delivery: (RowKind) -> Delivery
  let isStopping: () -> Bool
  /// Not while an upload finds out whether the collector is back.
  let mayProbe: () -> Bool
  /// Failures before are over.
  let collectorAnswered: () -> Void
  /// Books bytes of a metered network.
  let book: (Int) -> Void
  let tell: (RowKind, Delivery.Event) -> Void
  /// Rows of the kind are to leave now.
  let want: (RowKind) -> Void
  /// Rows of reports wait again.
  let requestRows: () -> Void
  /// Something else may be due first.
  let arm: () -> Void
  /// Runs `RecordSynchronizer.perform`; a stop waits for it.
  let begin: (RecordSynchronizer.Work) -> Void
  /// Runs `IntentHandler.perform`; a stop waits for it.
  let askIntents: () -> Void
}
