import PrismProtocol

/// The part of a pipeline that its children see (`RecordSynchronizer`, `CarryJob`). Used on the pipeline's own turns only.
struct PipelineHost {
  let parts: PipelineParts
  let settings: () -> PipelineSettings
  let gates: (RowKind) -> Gates
  let delivery: (RowKind) -> Delivery
  let isStopping: () -> Bool
  /// The collector is only probed, after failures in a row.
  let isCircuitOpen: () -> Bool
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
}
