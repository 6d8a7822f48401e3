import PrismProtocol

/// A walk over all rows of a namespace, in slices, to find the contexts that no row refers to: rows of one user may stay
/// long after those of thousands of sessions were evicted.
struct ContextSweep {
  let namespace: Int
  /// Contexts that stay: of sessions that lived when it began, and of rows that it met.
  var used: Set<Int64>
  /// Contexts from this id on came after it began.
  let end: Int64
  /// Kinds and priorities that are still to be walked, the current one last.
  var walks: [(queue: QueueID, lane: Lane, after: Int64)]
  /// The last context that was looked at, once all rows were.
  var lastContext: Int64 = 0

  init(_ namespace: Int, inUse: Set<Int64>, end: Int64) {
    (self.namespace, used, self.end) = (namespace, inUse, end)
    walks = ReportKind.allCases.flatMap { kind in
      Lane.allCases.map { (QueueID(namespace: namespace, kind: kind), $0, LaneValues.bases[$0]) }
    }
  }
}
