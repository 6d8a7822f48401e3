import Synchronization

/// The memory that all bodies share. Those of unproven senders have a part of it.
final class BodyBudget: Sendable {
  /// The bytes of one body.
  struct Charge: Sendable {
    fileprivate var bytes = 0, unprovenBytes = 0
  }

  private let bytesMax: Int
  private let unprovenBytesMax: Int
  private let used = Mutex(Charge())

  /// A quarter is for unproven senders, and at least as much as one body may have.
  init(bytesMax: Int, bodyBytesMax: Int) {
    (self.bytesMax, unprovenBytesMax) = (bytesMax, max(bytesMax / 4, min(bytesMax, bodyBytesMax)))
  }

  /// - Returns: false, and nothing taken, when there is not as much left, of all or of the unproven senders' part.
  func take(_ bytes: Int, isProven: Bool, into charge: inout Charge) -> Bool {
    let isTaken = used.withLock { used in
      guard bytes <= bytesMax - used.bytes, isProven || bytes <= unprovenBytesMax - used.unprovenBytes else {
        return false
      }
      used.bytes += bytes
      if !isProven { used.unprovenBytes += bytes }
      return true
    }
    guard isTaken else { return false }
    charge.bytes += bytes
    if !isProven { charge.unprovenBytes += bytes }
    return true
  }

  func give(back charge: Charge) {
    used.withLock { used in
      used.bytes -= charge.bytes
      used.unprovenBytes -= charge.unprovenBytes
    }
  }
}
