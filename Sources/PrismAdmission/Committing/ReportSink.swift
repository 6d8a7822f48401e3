public import PrismProtocol

/// Takes admitted reports to their commit: the store's side of admission.
public protocol ReportSink: Sendable {
  /// The next commit is large, and for one of several clients, which wait for all that the sink does.
  func noteNeighbours()

  /// Commits all of `batches` and `notes` at once, as `durability` says. Never throws: a failure is the outcome that every
  /// report of it is answered with.
  ///
  /// - Parameter whenDone: called once, where the commit was made, after this has returned. Not `async`: a client that
  ///   waits for its answer would wait for two more threads to wake up.
  func append(
    _ batches: [ReportBatch], notes: [BatchNote], whenDone: @escaping @Sendable (CommitOutcome) -> Void)

  /// Reads what `append` noted last under this key. - Returns: nil if there is no note, or it can't be read.
  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]?
}
