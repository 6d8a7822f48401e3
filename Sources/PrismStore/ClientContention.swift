import PrismBase
import Synchronization

/// Whether several clients send reports, and one of them very many. While they do, everything that the store does at a time
/// is short, since each of them waits for it (docs/store.md, "Several clients").
public final class ClientContention: Sendable {
  /// They are there for so long after the last commit for one of several.
  private static let lasting: Duration = .seconds(1)

  private let time: any TimeSource
  private let seenAt = Mutex<Duration?>(nil)

  init(_ time: any TimeSource) { self.time = time }

  /// A large commit for one of several clients begins.
  public func note() {
    let now = time.uptime
    seenAt.withLock { $0 = now }
  }

  /// There was such a commit within the last second.
  public var isPresent: Bool { seenAt.withLock { $0 }.map { time.uptime - $0 < Self.lasting } ?? false }
}
