import CLinux

/// Runs what needs more memory than was reserved for it one after the other, over all inputs: only one request of the process
/// holds that much. Users have turns, so that one who sends many waits only for itself.
actor LargeTurns {
  /// Of the process.
  static let shared = LargeTurns()

  struct Waiter {
    let userID: UInt32
    let continuation: CheckedContinuation<Void, Never>
  }

  private var isTaken = false
  private(set) var waiters: [Waiter] = []
  /// How many turns the users have had since the first of those who wait came. A new one begins with the least.
  private var turns: [UInt32: Int] = [:]

  /// Waits for a turn of the user, and runs `body` in it.
  func run<Result: Sendable, Failure: Error>(
    for userID: UInt32, _ body: @Sendable () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    if isTaken {
      let least = waiters.lazy.map { self.turns[$0.userID, default: 0] }.min() ?? 0
      turns[userID] = max(turns[userID, default: 0], least)
      await withCheckedContinuation { waiters.append(Waiter(userID: userID, continuation: $0)) }
    }
    isTaken = true
    defer {
      malloc_trim(0)  // the next one may be read on another thread, which has a heap of its own
      turns[userID, default: 0] += 1
      giveOn()
    }
    return try await body()
  }

  /// To the user with the fewest turns; of several to the one that waits longest.
  private func giveOn() {
    let next = waiters.indices.min { turns[waiters[$0].userID, default: 0] < turns[waiters[$1].userID, default: 0] }
    guard let next else {
      (isTaken, turns) = (false, [:])
      return
    }
    waiters.remove(at: next).continuation.resume()
  }
}
