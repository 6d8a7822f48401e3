import PrismBase
import Synchronization

/// Counts sign-ins that failed, so that no address tries many tokens.
final class SignInLimit: Sendable {
  /// Of one address in a minute.
  static let failuresMax = 10
  /// Addresses that are known; past it all others share one count.
  private static let addressesMax = 1000

  private struct State {
    var minute: Int64 = 0
    var failures: [String: Int] = [:]
  }

  private let state = Mutex(State())
  private let time: any TimeSource

  init(time: any TimeSource) { self.time = time }

  private func key(_ address: String, _ state: State) -> String {
    state.failures[address] == nil && state.failures.count >= Self.addressesMax ? "other" : address
  }

  private func renew(_ state: inout State) {
    let minute = time.uptime.components.seconds / 60
    if minute != state.minute { state = State(minute: minute) }
  }

  /// - Returns: whether the address may try.
  func allows(_ address: String) -> Bool {
    state.withLock { state in
      renew(&state)
      return state.failures[key(address, state), default: 0] < Self.failuresMax
    }
  }

  func failed(_ address: String) {
    state.withLock { state in
      renew(&state)
      state.failures[key(address, state), default: 0] += 1
    }
  }
}
