import Synchronization

/// The memory that all bodies share.
final class BodyBudget: Sendable {
  private let bytesMax: Int
  private let usedBytes = Mutex(0)

  init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// false, and nothing taken, when there is not as much left.
  func take(_ bytes: Int) -> Bool {
    usedBytes.withLock { used in
      guard bytes <= bytesMax - used else { return false }
      used += bytes
      return true
    }
  }

  func give(back bytes: Int) {
    usedBytes.withLock { $0 -= bytes }
  }
}
