import Synchronization

/// The memory that all bodies share. Those of unproven senders have a part of it.
final class BodyBudget: Sendable {
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

  /// An unproven sender's body has its senders' part, or, where one of them `isUrgent`, what is left of the rest. A proven
  /// sender's has all but their part: what they borrowed of the rest keeps no device out.
  ///
  /// - Returns: false, and nothing taken, when there is not as much left.
  func take(_ bytes: Int, isProven: Bool, isUrgent: Bool = false, into charge: inout Charge) -> Bool {
    let isTaken = used.withLock { used in
      let borrowed = max(0, used.unprovenBytes - unprovenBytesMax)
      let isRoom =
        isProven || isUrgent
        ? bytes <= bytesMax - used.bytes + (isProven ? borrowed : 0) : bytes <= unprovenBytesMax - used.unprovenBytes
      guard isRoom else { return false }
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
