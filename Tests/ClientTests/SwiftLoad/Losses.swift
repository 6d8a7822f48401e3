import Glibc
import PrismClient
import PrismProtocol
import Synchronization

/// The losses that the client reports; the last ones come while it ends.
final class Losses: Sendable {
  private let counts = Mutex<(spool: UInt64, refused: UInt64)>((0, 0))

  func note(_ loss: SpooledLoss) {
    counts.withLock { counts in
      switch loss.cause {
      case .spoolFull: counts.spool += loss.count
      case .refused: counts.refused += loss.count
      case .queueFull, .damaged: break  // they are in the client's counts
      }
    }
  }

  /// The line that the scenario reads.
  func text(with client: SpooledCounts) -> String {
    let (spool, refused) = counts.withLock { $0 }
    let line: JSONValue = [
      "pid": .int(Int(getpid())), "accepted": .int(Int(client.accepted)), "stored": .int(Int(client.stored)),
      "refused": .int(Int(refused)), "droppedQueue": .int(Int(client.droppedQueue)), "droppedSpool": .int(Int(spool)),
      "damagedBytes": .int(Int(client.damagedBytes)),
    ]
    return line.text
  }
}
