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

  private enum Event {
    case packet(Refused)
    /// A connection was closed for others; with an address that caused it.
    case connection(from: String)
  }

  /// The fields of a log line about one refused packet.
  struct Refused: Sendable {
    var refusal: CollectorRefusal
    /// The peer's address.
    var from: String
    /// The sender; nil if it is not proven.
    var sender: PacketContext?
  }

  private static let interval: Duration = .seconds(60)

  private let causes = Mutex<[String: Cause]>([:])
  private let time: any TimeSource
  private let log: Logger

  init(time: any TimeSource, log: Logger) { (self.time, self.log) = (time, log) }

  func add(_ refused: Refused) { add(refused.refusal.cause, .packet(refused)) }

  /// A connection was closed.
  func add(_ reason: CrowdedReason, from address: String) {
    add("crowded " + reason.rawValue, .connection(from: address))
  }

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
    let refused: Refused
    switch line.last {
    case .packet(let packet): refused = packet
    case .connection(let from):
      return log.warning(
        "connections are closed for others; see connectionMax",
        ["cause": cause, "count": String(line.count), "last_from": from])
    }
    let (refusal, from) = (refused.refusal, refused.from)
    let (count, status) = (String(line.count), String(refusal.status))
    guard let sender = refused.sender else {
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
