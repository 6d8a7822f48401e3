import PrismBase
import PrismProtocol

/// The bytes of a namespace over metered networks in its current window of 24 h (docs/delivery.md, "Gates").
///
/// Within a boot of the machine the window's age is counted by the uptime clock, which never steps. Over a boot only the
/// wall clock can measure time. If it is behind the window's begin (a machine without a battery-backed clock, for
/// example), it is read again while this window lasts, because it may be corrected later. No step of the clock makes a
/// window longer than 24 h of uptime.
struct FlowWindow: Sendable, Equatable {
  static let length: Duration = .seconds(86_400)
  static let noteKey = "flow"

  private(set) var usedBytes: Int
  /// The rest that the next packet needs; not kept over a restart.
  var neededBytes = 0
  private var startedUnixMilliseconds: Int64
  /// The window's age when `anchor` was taken.
  private var ageAtAnchor: Duration
  private var anchor: Duration
  private var asksWallClock: Bool

  /// A new window.
  init(now: Instant) {
    (usedBytes, startedUnixMilliseconds, ageAtAnchor) = (0, now.unixMilliseconds, .zero)
    (anchor, asksWallClock) = (now.uptime, false)
  }

  /// The window as `note` holds it; nil where the note is not one of this format.
  init?(note: [UInt8], now: Instant, bootID: String = KernelBoot.id ?? "") {
    guard let value = try? JSONValue(parsing: note),  // a damaged note is as good as none: a new window
      let used = value["usedBytes"]?.int, used >= 0, let started = value["startedUnixMs"]?.int
    else { return nil }
    usedBytes = used
    startedUnixMilliseconds = Int64(started)
    anchor = now.uptime
    let counted = NoteStamp.elapsed(since: value, now, bootID)
    if counted.isWhole, let age = value["ageMs"]?.int.map(Int64.init), 0...Self.length.wholeMilliseconds ~= age {
      ageAtAnchor = min(Self.length, .milliseconds(age + counted.atLeast))
      asksWallClock = value["asksWallClock"]?.bool ?? false
      return
    }
    let age = now.unixMilliseconds.subtractingReportingOverflow(startedUnixMilliseconds)
    ageAtAnchor = .milliseconds(min(max(age.overflow ? 0 : age.partialValue, 0), Self.length.wholeMilliseconds))
    asksWallClock = age.overflow || age.partialValue < 0
  }

  /// The part that survives a restart.
  func note(now: Instant, bootID: String = KernelBoot.id ?? "") -> [UInt8] {
    let age = min(age(now), Self.length).wholeMilliseconds
    let started =
      asksWallClock ? startedUnixMilliseconds : now.unixMilliseconds.subtractingReportingOverflow(age).partialValue
    var members: [JSONValue.Member] = [
      .init("usedBytes", .int(usedBytes)), .init("startedUnixMs", .int(started)), .init("ageMs", .int(age)),
    ]
    if asksWallClock { members.append(.init("asksWallClock", .bool(true))) }
    return JSONValue.object(members + NoteStamp.members(now, bootID)).bytes
  }

  /// Time until the next window begins.
  func remaining(_ now: Instant) -> Duration { max(.zero, Self.length - age(now)) }

  /// Begins a new window where this one is over.
  mutating func roll(_ now: Instant) {
    if age(now) >= Self.length { self = FlowWindow(now: now) }
  }

  mutating func book(_ bytes: Int) {
    usedBytes = max(0, usedBytes + bytes)
  }

  private func age(_ now: Instant) -> Duration {
    let counted = ageAtAnchor + now.uptime - anchor
    guard asksWallClock, now.unixMilliseconds > startedUnixMilliseconds else { return counted }
    let age = now.unixMilliseconds.subtractingReportingOverflow(startedUnixMilliseconds)
    return max(counted, age.overflow ? Self.length : .milliseconds(age.partialValue))
  }
}

/// When a note was written, so that the time since is known without a wall clock.
enum NoteStamp {
  static func members(_ now: Instant, _ bootID: String) -> [JSONValue.Member] {
    [.init("boot", .string(bootID)), .init("sinceUptimeMs", .int(now.uptime.wholeMilliseconds))]
  }

  /// - Returns: milliseconds since the note was written, at the least, and whether that is all: it was in this boot.
  static func elapsed(since note: JSONValue, _ now: Instant, _ bootID: String) -> (atLeast: Int64, isWhole: Bool) {
    guard let boot = note["boot"]?.string, let since = note["sinceUptimeMs"]?.int.map(Int64.init) else {
      return (0, false)
    }
    let now = now.uptime.wholeMilliseconds
    return boot == bootID && !bootID.isEmpty && 0...now ~= since ? (now - since, true) : (now, false)
  }
}

/// Both clocks, read at once.
struct Instant: Sendable, Equatable {
  var uptime: Duration
  var unixMilliseconds: Int64

}

extension Instant {
  init(_ time: any TimeSource) { self.init(uptime: time.uptime, unixMilliseconds: time.unixMilliseconds) }
}
