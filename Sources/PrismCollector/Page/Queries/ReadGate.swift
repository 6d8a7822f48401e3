import Synchronization

/// Bounds how many questions of readers run or wait at a time: each holds memory, and they share one connection.
final class ReadGate: Sendable {
  static let questionsMax = 32

  private let running = Mutex(0)

  /// - Throws: 503 where too many run.
  func run<Result: Sendable>(
    _ body: () async throws(CollectorRefusal) -> Result
  ) async throws(CollectorRefusal) -> Result {
    let isTaken = running.withLock { count in
      guard count < Self.questionsMax else { return false }
      count += 1
      return true
    }
    guard isTaken else {
      throw CollectorRefusal(503, "too many questions at once; try again", retryAfterSeconds: 1)
    }
    defer { running.withLock { $0 -= 1 } }
    return try await body()
  }
}
