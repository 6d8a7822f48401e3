public import PrismConfig
public import PrismProtocol
import Synchronization

/// Holds the snapshot that is in force. A user of the snapshot compares `generation` and takes `current` when it rose
/// (pull), or is called by the engine (push).
public final class ConfigurationHub: Sendable {
  private struct State {
    var current: Snapshot
    var observers: [@Sendable () -> Void] = []
    var faults: [String] = []
    var failedReloads = 0
  }

  private let state: Mutex<State>
  private let published: Atomic<Int>

  public init(_ snapshot: Snapshot) {
    state = Mutex(State(current: snapshot))
    published = Atomic(snapshot.generation)
  }

  /// The snapshot in force.
  public var current: Snapshot { state.withLock { $0.current } }

  /// Of `current`; costs no lock.
  public var generation: Int { published.load(ordering: .acquiring) }

  /// Faults of the last reload that failed, until the next good one; one a line, as `prismd check` prints them.
  public var faults: [String] { state.withLock { $0.faults } }
  /// Reloads that were refused since the start.
  public var failedReloads: Int { state.withLock { $0.failedReloads } }

  /// Calls `observer` after each change; it must not wait. It is kept as long as the hub.
  public func observe(_ observer: @escaping @Sendable () -> Void) { state.withLock { $0.observers.append(observer) } }

  /// Puts `snapshot` in force under the next generation and ignores its own. An equal one clears the faults and changes
  /// nothing else.
  /// - Returns: what is different now, for the caller to tell, outside of any lock.
  public func publish(_ snapshot: Snapshot) -> ConfigurationChange {
    let change = state.withLock { state in
      let old = state.current
      state.faults = []
      var new = snapshot
      new.generation = old.generation
      guard new != old else { return ConfigurationChange(from: old, to: old) }
      new.generation = old.generation + 1
      state.current = new
      published.store(new.generation, ordering: .releasing)
      return ConfigurationChange(from: old, to: new)
    }
    if change.new.generation != change.old.generation {
      for observer in state.withLock({ $0.observers }) { observer() }
    }
    return change
  }

  /// A reload failed: the snapshot in force stays.
  public func refuse(_ faults: [String]) {
    state.withLock {
      $0.faults = faults
      $0.failedReloads += 1
    }
  }
}

/// The difference that a published snapshot made, by namespace.
public struct ConfigurationChange: Sendable, Equatable {
  /// The snapshots before and after.
  public let old: Snapshot, new: Snapshot

  public init(from old: Snapshot, to new: Snapshot) { (self.old, self.new) = (old, new) }

  /// Whether the two are equal.
  public var isNothing: Bool { old == new }

  /// Namespaces that work differently now: added, changed, retired, or with a key or device id that did.
  public var namespaces: Set<NamespaceName> {
    let names = Set(old.namespaces.keys).union(new.namespaces.keys)
    return names.filter {
      PipelineSettings(namespace: $0, snapshot: old, automaticDeviceID: "")
        != PipelineSettings(namespace: $0, snapshot: new, automaticDeviceID: "")
    }
  }
}
