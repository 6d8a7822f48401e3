import Synchronization

/// Bounds how many of one thing there are at a time: each holds memory, and questions share one connection.
final class ReadGate: Sendable {
  static let questionsMax = 32

  /// One of them, until its last reference is gone.
  typealias Place = MemoryBudget.Lease

  /// A place is a byte of it.
  private let places: MemoryBudget
  private let refusal: CollectorRefusal
  private let closed = Atomic(false)

  /// - Parameter message: says that there are too many.
  init(
    countMax: Int = questionsMax, waitingMax: Int = .max,
    _ message: String = "too many questions at once; try again", retryAfterSeconds: Int = 1
  ) {
    places = MemoryBudget(bytesMax: countMax, waitingMax: waitingMax)
    refusal = CollectorRefusal(503, message, retryAfterSeconds: retryAfterSeconds)
  }

  /// From now on there are no more: those that wait are refused.
  func close() { closed.store(true, ordering: .relaxed) }

  var isClosed: Bool { closed.load(ordering: .relaxed) }
  var waitingCount: Int { places.waitingCount }
  var isUsed: Bool { places.usedBytes > 0 }

  /// - Throws: 503 where there are too many.
  func take() throws(CollectorRefusal) -> Place {
    guard !isClosed, let place = places.takeAtOnce(1) else { throw refusal }
    return place
  }

  /// Waits for a place; those that came first have it first. - Throws: 503 where too many wait, or once it is closed.
  func wait() async throws(CollectorRefusal) -> Place {
    guard let place = await places.take(1), !isClosed else { throw refusal }
    return place
  }

  func inTurn<Result: Sendable>(
    _ body: () async throws(CollectorRefusal) -> Result
  ) async throws(CollectorRefusal) -> Result {
    let place = try await wait()
    defer { withExtendedLifetime(place) {} }
    return try await body()
  }

  /// - Throws: 503 where there are too many.
  func run<Result: Sendable>(
    _ body: () async throws(CollectorRefusal) -> Result
  ) async throws(CollectorRefusal) -> Result {
    let place = try take()
    defer { withExtendedLifetime(place) {} }
    return try await body()
  }
}
