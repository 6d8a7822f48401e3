public import PrismProtocol

/// The entry for the reports of any input. The same allow rules, quotas, counters and shares of memory hold as on the ingest
/// socket. All reports that wait are one commit, and no answer comes before it (docs/extending.md, "Add an input").
public protocol SubmissionSink: Sendable {
  /// Hands a group over. Waits while its user's share of `ingest.memoryMByte` has no room, so that an input which waits for
  /// it before it reads on holds its sender back. Groups of one task are committed in their order.
  ///
  /// - Parameter room: reserved before the group was read; the group is charged to it, and is not waited for. nil: what the
  ///   group needs (`memoryBytes`) is reserved here.
  /// - Parameter whenCommitted: called once, with one answer for each submission in their order, after the commit that
  ///   holds them, or when they are refused. Called on the thread that answers: it must not wait.
  func submit(
    _ group: SubmissionGroup, room: MemoryRoom?, whenCommitted: @escaping @Sendable ([SubmissionAnswer]) -> Void) async

  /// Reserves memory for input that is to be read or decoded; waits while the user's share has no room.
  /// - Returns: nil if no share has this much, the daemon stops, or the task is cancelled.
  func reserve(bytes: Int, userID: UInt32) async -> MemoryRoom?

  /// Reads a group's note. - Returns: nil if there is no note.
  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]?
}

extension SubmissionSink {
  /// Hands a group over and waits for its commit. - Returns: one answer for each submission, in their order.
  public func submit(_ group: SubmissionGroup, room: MemoryRoom? = nil) async -> [SubmissionAnswer] {
    let (answers, continuation) = AsyncStream.makeStream(of: [SubmissionAnswer].self)
    await submit(group, room: room) {
      continuation.yield($0)
      continuation.finish()
    }
    for await answer in answers { return answer }
    return group.submissions.map { _ in .refused(.stopping) }  // the task was cancelled
  }
}
