import PrismProtocol

/// A walk over all rows of a namespace, in slices, to find the contexts that no row refers to. Rows of one user may
/// stay long after those of thousands of sessions were evicted.
struct ContextSweep {
  let namespace: Int
  /// Contexts that stay: of sessions that lived when it began, and of rows that it met.
  var used: Set<Int64>
  /// Contexts from this id on came after it began.
  let end: Int64
  /// Kinds and priorities that are still to be walked, the current one last.
  var walks: [(queue: QueueID, priority: Priority, after: Int64)]
  /// The last context that was looked at, after all rows were.
  var lastContext: Int64 = 0

  init(_ namespace: Int, inUse: Set<Int64>, end: Int64) {
    (self.namespace, used, self.end) = (namespace, inUse, end)
    walks = QueueID.all(of: namespace).flatMap { queue in
      Priority.allCases.map { (queue, $0, PriorityValues.bases[$0]) }
    }
  }
}

/// How far looking for unused contexts has come.
struct ContextSweeps {
  /// nil if no sweep runs.
  var current: ContextSweep?
  /// By namespace: how many contexts are worth a sweep.
  var countsBefore: [Int: Int] = [:]
  /// The id that the next context was to have when no namespace had enough of them.
  var nextContextSeen: Int64 = 0
  /// The last context that `UnusedContexts.forget` looked at.
  var lastForgotten: Int64 = 0
}
