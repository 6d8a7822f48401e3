import PrismBase
import PrismHTTP
import PrismProtocol
import Synchronization

/// One log line a minute for each cause for which packets are refused or connections closed, with how many there were. Causes are this program's
/// own words, so no sender makes lines of its choosing.
final class RefusalLog: Sendable {
  private struct Cause {
    var loggedAt: Duration?
    /// Since the last line.
    var count = 0
    var last: Event
  }

  /// An address that caused it, and the refusal, with its sender if one is proven; nil: a connection was closed for others.
  private typealias Event = (from: String, refusal: CollectorRefusal?)

  private static let interval: Duration = .seconds(60)

  private let causes = Mutex<[String: Cause]>([:])
  private let time: any TimeSource
  private let log: Logger

  init(time: any TimeSource, log: Logger) { (self.time, self.log) = (time, log) }

  /// A packet, or a question, was refused.
  func add(_ refusal: CollectorRefusal, from address: String) { add(refusal.cause, (address, refusal)) }

  /// A connection was closed.
  func add(_ reason: CrowdedReason, from address: String) { add("crowded " + reason.rawValue, (address, nil)) }

  private func add(_ name: String, _ event: Event) {
    let line = causes.withLock { causes in
      var cause = causes[name] ?? Cause(last: event)
      cause.count += 1
      cause.last = event
      let line = take(&cause)
      causes[name] = cause
      return line
    }
    if let line { write(name, line) }
  }

  /// Logs what was counted since the last lines, where those are old enough.
  func flush() {
    let lines = causes.withLock { causes in
      causes.keys.sorted().compactMap { name in
        causes[name]!.count > 0 ? take(&causes[name]!).map { (name, $0) } : nil
      }
    }
    for (name, line) in lines { write(name, line) }
  }

  private func take(_ cause: inout Cause) -> (count: Int, last: Event)? {
    let now = time.uptime
    if let at = cause.loggedAt, now - at < Self.interval { return nil }
    defer { (cause.loggedAt, cause.count) = (now, 0) }
    return (cause.count, cause.last)
  }

  private func write(_ cause: String, _ line: (count: Int, last: Event)) {
    let (from, count) = (line.last.from, String(line.count))
    guard let refusal = line.last.refusal else {
      return log.warning(
        "connections are closed for others; see connectionMax", ["cause": cause, "count": count, "last_from": from])
    }
    let status = String(refusal.status)
    guard let sender = refusal.sender else {
      return log.warning("packets refused", ["cause": cause, "status": status, "count": count, "last_from": from])
    }
    log.warning(
      "packets refused",
      [
        "cause": cause, "status": status, "count": count, "last_from": from, "last_device": sender.deviceID,
        "last_namespace": sender.namespace.text, "message": refusal.message,
      ])
  }
}
