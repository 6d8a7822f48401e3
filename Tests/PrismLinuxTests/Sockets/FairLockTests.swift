import Dispatch
import Glibc
import Synchronization
import Testing

@testable import PrismLinux

@Suite("A lock that is given in the order of its waiters")
struct FairLockTests {
  /// A thread that takes the lock again and again.
  private final class BusyThread: Sendable {
    let turns = Atomic(0)
    private let isDone = Atomic(false)
    private let ended = DispatchSemaphore(value: 0)

    init(_ lock: FairLock) {
      DispatchQueue(label: "busy").async { [self] in
        while !isDone.load(ordering: .relaxed) { lock.withLock { work() } }
        ended.signal()
      }
    }

    /// A turn that is long beside the time in which a thread wakes up.
    private func work() {
      turns.add(1, ordering: .relaxed)
      for _ in 0..<20_000 { _ = turns.load(ordering: .relaxed) }
    }

    func end() {
      isDone.store(true, ordering: .relaxed)
      ended.wait()
    }
  }

  @Test("a thread that takes it again and again keeps another one waiting for few of its turns")
  func isFair() {
    let (lock, own) = (FairLock(), 100)
    let busy = BusyThread(lock)
    while busy.turns.load(ordering: .relaxed) == 0 { sched_yield() }  // else this thread would be done before it begins
    for _ in 0..<own { lock.withLock {} }
    let others = busy.turns.load(ordering: .relaxed)
    busy.end()
    // About two for each: the turn that is on, and one before this thread asks again. A mutex of the POSIX library lets in hundreds.
    #expect(others < 20 * own, "\(others) turns of the other thread beside \(own)")
  }
}
