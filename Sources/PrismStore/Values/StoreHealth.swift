import PrismBase
public import PrismProtocol
import Synchronization

/// How the store is: what `prismctl status`, `/readyz` and the metrics say of it.
public struct StoreHealth: Sendable, Equatable {
  /// The raw value is a metric's label.
  public enum State: String, Sendable, CaseIterable {
    case working
    /// Reports of a damaged database are being brought into the new one. New ones are taken.
    case salvaging
    /// Reports are refused, uploads go on.
    case diskFull
    /// The database was deleted or replaced under the daemon, and is written again from the file that the daemon still
    /// holds open. Reports are refused, uploads go on.
    case displaced
    /// The database can't be read or written; each use tries again. Reports are refused.
    case failing
  }

  /// The present state.
  public var state = State.working
  /// Milliseconds since 1970, when it came into this state.
  public var since: Int64
  /// The last fault, in SQLite's or the system's words; nil before the first.
  public var cause: String?
  // Since the start:
  /// Uses of the database that failed.
  public var faults = 0
  /// Databases that were set aside.
  public var setAside = 0
  /// Until then, on the uptime clock, people are shown that a database was set aside; nil: they are not.
  public var newsEnd: Duration?
  /// Reports that were brought over from those.
  public var salvagedRows = 0
  /// Reports that could not be, as far as their number is known: counted `corrupt`.
  public var lostRows = 0

  /// Databases in the state folder that were set aside and hold reports which are not brought over, by their names.
  public var leftBehind: [String] = []
  /// Reports that are still to be brought over, by namespace and kind. Until then no report of that kind is sent, so
  /// that an older one is not overtaken. 0: how many is not known.
  public var awaited: [NamespaceName: [RowKind: Int]] = [:]

  public init(since: Int64) { self.since = since }

  /// The answer of `/readyz`.
  public var takesReports: Bool {
    switch state {
    case .working, .salvaging: true
    case .diskFull, .displaced, .failing: false
    }
  }
}

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
