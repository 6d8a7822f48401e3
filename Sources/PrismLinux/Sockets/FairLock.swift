import Synchronization

/// A lock that its waiters get in their order. A mutex of the POSIX library lets a running thread in before one that sleeps, so
/// that a busy thread would keep the others waiting.
///
/// A waiter spins in the kernel while the holder runs (futex(2), FUTEX_LOCK_PI), and sleeps while it does not.
final class FairLock: Sendable {
  private let turn = Mutex(())

  /// - Returns: false if another one holds it, and `body` did not run.
  func withLockIfFree(_ body: () -> Void) -> Bool { turn.withLockIfAvailable { _ in body() } != nil }

  func withLock(_ body: () -> Void) { turn.withLock { _ in body() } }
}
