public import PrismBase
import Synchronization

/// Both clocks, turned by hand. A sleeper wakes when a test moves the time past its deadline, and not before.
public final class ManualTime: TimeSource {
  private struct Sleeper {
    let deadline: Duration
    let wake: CheckedContinuation<Bool, Never>
  }
  private struct State {
    var uptime: Duration
    /// Since 1970.
    var wall: Duration
    var sleepers: [Int: Sleeper] = [:]
    var lastNumber = 0
    var cancelled: Set<Int> = []
  }
  private let state: Mutex<State>

  public init(uptime: Duration = .seconds(1000), unixMilliseconds: Int64 = 1_700_000_000_000) {
    state = Mutex(State(uptime: uptime, wall: .milliseconds(unixMilliseconds)))
  }

  public var uptime: Duration { state.withLock { $0.uptime } }
  public var unixMilliseconds: Int64 {
    let (seconds, attoseconds) = state.withLock { $0.wall.components }
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  /// When the first sleeper is due; nil if there is no sleeper.
  public var nextDeadline: Duration? { state.withLock { $0.sleepers.values.map(\.deadline).min() } }

  public func advance(by duration: Duration) {
    let due = state.withLock { state -> [Sleeper] in
      state.uptime += duration
      state.wall += duration
      let due = state.sleepers.filter { $0.value.deadline <= state.uptime }
        .sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }
      for (number, _) in due { state.sleepers[number] = nil }
      return due.map(\.value)
    }
    for sleeper in due { sleeper.wake.resume(returning: true) }
  }

  public func move(days: Int64 = 0, seconds: Int64 = 0) { advance(by: .seconds(days * 86_400 + seconds)) }

  /// How many wait to be woken.
  public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  /// Steps the wall clock alone, as anyone may at any time.
  public func stepWallClock(milliseconds: Int64) { state.withLock { $0.wall += .milliseconds(milliseconds) } }

  public func sleep(until deadline: Duration) async throws {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    let isOver = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer = state.withLock { state -> Bool? in
          if state.cancelled.remove(number) != nil { return false }
          if deadline <= state.uptime { return true }
          state.sleepers[number] = Sleeper(deadline: deadline, wake: continuation)
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      let sleeper = state.withLock { state -> Sleeper? in
        if let sleeper = state.sleepers.removeValue(forKey: number) { return sleeper }
        state.cancelled.insert(number)
        return nil
      }
      sleeper?.wake.resume(returning: false)
    }
    if !isOver { throw CancellationError() }
  }
}
