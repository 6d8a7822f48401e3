import PrismProtocol
import Synchronization

/// The last known state of each namespace's gather switch.
final class GatherMemory: Sendable {
  static let ageMax: Duration = .seconds(30)

  private struct Entry {
    var isGather = true
    var askedAt: ContinuousClock.Instant
  }

  private let entries = Mutex<[NamespaceName: Entry]>([:])

  /// - Returns: the remembered value, and whether the caller must ask the daemon. One caller in each `ageMax` must ask.
  func look(up namespace: NamespaceName, now: ContinuousClock.Instant) -> (isGather: Bool, mustAsk: Bool) {
    entries.withLock { entries in
      guard var entry = entries[namespace] else {
        entries[namespace] = Entry(askedAt: now)
        return (true, true)
      }
      guard entry.askedAt + Self.ageMax <= now else { return (entry.isGather, false) }
      entry.askedAt = now
      entries[namespace] = entry
      return (entry.isGather, true)
    }
  }

  func remember(_ isGather: Bool, of namespace: NamespaceName) {
    entries.withLock { $0[namespace]?.isGather = isGather }
  }
}
