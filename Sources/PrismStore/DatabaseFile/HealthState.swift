import PrismBase
import Synchronization

/// The store's health, to be read from anywhere at any time: also while the store's queue is busy or hangs.
final class HealthState: Sendable {
  private let health: Mutex<StoreHealth>
  private let time: any TimeSource

  init(_ time: any TimeSource) {
    self.time = time
    health = Mutex(StoreHealth(since: time.unixMilliseconds))
  }

  var current: StoreHealth { health.withLock { $0 } }

  func enter(_ state: StoreHealth.State) {
    let now = time.unixMilliseconds
    health.withLock { health in
      guard health.state != state else { return }
      (health.state, health.since) = (state, now)
    }
  }

  /// A use of the database failed.
  func failed(_ cause: String, _ state: StoreHealth.State) {
    note {
      $0.cause = cause
      $0.faults += 1
    }
    enter(state)
  }

  /// A database was set aside.
  func wasSetAside(_ cause: String) {
    let end = time.uptime + .seconds(86_400)
    note {
      $0.setAside += 1
      ($0.cause, $0.newsEnd) = (cause, end)
    }
  }

  func acknowledge() -> Bool {
    health.withLock { health in
      defer { health.newsEnd = nil }
      return health.newsEnd != nil
    }
  }

  func note(_ change: (inout StoreHealth) -> Void) { health.withLock { change(&$0) } }
}
