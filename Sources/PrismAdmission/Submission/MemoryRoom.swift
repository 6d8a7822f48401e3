import Synchronization

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
