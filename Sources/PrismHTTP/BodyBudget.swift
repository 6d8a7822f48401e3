import Synchronization

/// The memory that all bodies share.
final class BodyBudget: Sendable {
  private struct State {
    var usedBytes = 0
    /// By address; peers without an address share one entry.
    var usedBytesByAddress: [String: Int] = [:]
  }

  private let bytesMax: Int
  private let bytesPerAddressMax: Int
  private let state = Mutex(State())

  init(bytesMax: Int, bytesPerAddressMax: Int) {
    (self.bytesMax, self.bytesPerAddressMax) = (bytesMax, bytesPerAddressMax)
  }

  /// false, and nothing taken, when there is not as much left, of all or of the address's share.
  func take(_ bytes: Int, of address: String) -> Bool {
    state.withLock { state in
      let used = address.isEmpty ? 0 : state.usedBytesByAddress[address] ?? 0
      guard bytes <= bytesMax - state.usedBytes, bytes <= bytesPerAddressMax - used else { return false }
      state.usedBytes += bytes
      if !address.isEmpty { state.usedBytesByAddress[address] = used + bytes }
      return true
    }
  }

  func give(back bytes: Int, of address: String) {
    guard bytes > 0 else { return }
    state.withLock { state in
      state.usedBytes -= bytes
      guard let used = state.usedBytesByAddress[address] else { return }
      state.usedBytesByAddress[address] = used > bytes ? used - bytes : nil
    }
  }
}
