#if canImport(Glibc)
  import Glibc
#endif

/// The two clocks, passed in everywhere so that a test can turn them by hand.
///
/// Timers, deadlines, backoff and ages use `uptime`; stamps use `unixMilliseconds`, which can be stepped by anyone at any
/// time and must never decide how long something waits or is kept.
public protocol TimeSource: Sendable {
  /// Time since an arbitrary origin that never goes back and is not stepped (CLOCK_BOOTTIME).
  var uptime: Duration { get }
  /// Wall clock: milliseconds since 1970, UTC.
  var unixMilliseconds: Int64 { get }
  /// Returns at or after `deadline` on the `uptime` clock. - Throws: `CancellationError` when the task is cancelled.
  func sleep(until deadline: Duration) async throws
}

extension TimeSource {
  /// Suspends for `duration`, measured by `uptime`.
  public func sleep(for duration: Duration) async throws {
    try await sleep(until: uptime + duration)
  }

  /// The value of `work`; nil: it takes longer than `limit`, and goes on without this caller.
  public func value<Value: Sendable>(
    within limit: Duration, of work: @escaping @Sendable () async -> Value
  ) async -> Value? {
    let (answers, answer) = AsyncStream.makeStream(of: Value?.self)
    Task { answer.yield(await work()) }
    let timer = Task {
      try? await sleep(for: limit)  // cancelled: it answered
      answer.yield(nil)
    }
    defer { timer.cancel() }
    for await first in answers { return first }
    return nil
  }
}

extension Duration {
  /// Rounded towards zero.
  public var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  /// Rounded up, for people and for status: a wait of 0.2 s is "1", not "now".
  package var secondsRoundedUp: Int64 {
    let (seconds, attoseconds) = components
    return seconds + (attoseconds > 0 ? 1 : 0)
  }

  /// For people, rounded up to a whole number of one unit: `90 s`, `11 min`, `3 h`, `4 days`.
  package var words: String {
    let units: [(length: Int64, name: String)] = [(86_400, "days"), (3600, "h"), (60, "min")]
    let seconds = secondsRoundedUp
    guard let unit = units.first(where: { seconds >= 2 * $0.length }) else { return "\(seconds) s" }
    return "\((seconds + unit.length - 1) / unit.length) \(unit.name)"
  }
}

/// The machine's own clocks.
public struct SystemTime: TimeSource {
  public init() {}

  /// The time since the boot, including suspension; never steps.
  public var uptime: Duration { Self.read(CLOCK_BOOTTIME) }

  /// The wall clock: milliseconds since 1970. It may step.
  public var unixMilliseconds: Int64 { Self.read(CLOCK_REALTIME).wholeMilliseconds }

  /// Suspends until `uptime` is `deadline`.
  public func sleep(until deadline: Duration) async throws {
    let wait = deadline - uptime
    if wait > .zero { try await ContinuousClock().sleep(for: wait) } else { try Task.checkCancellation() }
  }

  private static func read(_ clock: clockid_t) -> Duration {
    var time = timespec()
    clock_gettime(clock, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
