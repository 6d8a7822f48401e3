public import PrismProtocol
import Synchronization

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

  /// Counts reports that came and can't be read, and names them to those who follow.
  /// - Parameters:
  ///   - type: theirs, and `namespace`, as far as they are known.
  func refuse(_ refusal: Refusal, count: Int, type: String?, namespace: String?) async

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

  /// Hands one report over and waits for its commit. - Returns: nil if it was taken.
  public func submit(_ report: Submission, note: BatchNote? = nil) async -> Refusal? {
    await submit(SubmissionGroup([report], note: note, userID: report.source.peer.accountID)).first?.refusal
  }
}

/// Memory that is reserved in a user's share (`SubmissionSink.reserve`). Handing it over with its group, or letting go of
/// it, gives it back.
public final class MemoryRoom: Sendable {
  /// The number that the memory is known by.
  public let id: Int
  /// The reserved bytes.
  public let bytes: Int
  private let release: @Sendable () -> Void
  private let isHeld = Atomic<Bool>(true)

  /// - Parameter release: called once, unless the room is taken over.
  public init(id: Int, bytes: Int, release: @escaping @Sendable () -> Void) {
    (self.id, self.bytes, self.release) = (id, bytes, release)
  }

  deinit { if isHeld.load(ordering: .relaxed) { release() } }

  /// Takes the room over: its taker releases it. - Returns: false if it was taken before.
  public func take() -> Bool { isHeld.exchange(false, ordering: .relaxed) }
}
