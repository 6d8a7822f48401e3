import PrismBase
import Synchronization

/// The memory of large answers until they are read. If too little is left for one, its client gets 503.
final class AnswerBudget: Sendable {
  /// A smaller answer is not counted: it fits into the connection's own buffers.
  static let bytesMin = 256 * 1024

  private let bytesMax: Int
  private let usedBytes = Mutex(0)

  init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// The bytes of an answer until it is sent.
  private final class Lease: Sendable {
    private let budget: AnswerBudget
    private let bytes: Int

    init(_ budget: AnswerBudget, _ bytes: Int) { (self.budget, self.bytes) = (budget, bytes) }
    deinit { budget.usedBytes.withLock { $0 -= bytes } }
  }

  /// - Returns: the answer with a large body as a stream of it, without a copy; or the refusal.
  func streamed(_ response: HTTPResponse) -> HTTPResponse {
    let bytes = response.body.count
    guard response.stream == nil, bytes > Self.bytesMin else { return response }
    let isTaken = usedBytes.withLock { used in
      // One alone is always sent.
      guard used == 0 || bytes <= bytesMax - used else { return false }
      used += bytes
      return true
    }
    guard isTaken else {
      return .refusal(503, "too many large answers wait to be read, try again", headers: [("Retry-After", "1")])
    }
    var streamed = response
    streamed.stream = HTTPStream(response.body, holding: Lease(self, bytes))
    streamed.body = []
    return streamed
  }
}
