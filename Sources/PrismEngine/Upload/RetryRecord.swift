import PrismBase
import PrismProtocol

/// The record of failures in a row of a namespace and kind. It survives restarts, so that a daemon that is restarted
/// repeatedly doesn't storm a collector that is down.
struct RetryRecord: Sendable, Equatable {
  struct Failure: Sendable, Equatable {
    var unixMilliseconds: Int64
    /// nil where no whole answer came.
    var status: Int?
    /// As the collector gave it.
    var code: PacketRefusal?
    var cause: String
    /// That the packet went to; nil: unknown.
    var collector: CollectorAddress?

    /// A receiver that takes no records, and may take reports: nothing is said of its health.
    func isMissingRoute(of kind: RowKind) -> Bool { !kind.isReport && (status == 404 || status == 405) }
  }

  static func noteKey(_ kind: RowKind) -> String { "retry.\(kind.name)" }

  /// Of this kind; 0 after a success.
  private(set) var failuresInRow = 0
  private(set) var lastFailure: Failure?
  private(set) var pause: UploadState.Pause?

  /// The pause after a failure. - Parameter retryAfter: as the collector asked.
  mutating func failed(
    _ failure: Failure, reason: UploadState.Pause.Reason, retryAfter: Duration?, random: UInt64, now: Duration
  ) -> UploadState.Pause {
    failuresInRow += 1
    lastFailure = failure
    let backoff = Backoff.pause(afterFailures: failuresInRow, isConfiguration: reason == .held, random: random)
    let pause =
      retryAfter.flatMap { Self.pause(asked: $0, random, now) }
      ?? UploadState.Pause(until: now + backoff, reason: reason)
    self.pause = pause
    return pause
  }

  /// A little more than what was asked for, and not all at once, when a date was given to a whole fleet; never less.
  private static func pause(asked: Duration, _ random: UInt64, _ now: Duration) -> UploadState.Pause? {
    guard asked > .zero else { return nil }
    return UploadState.Pause(until: now + asked + min(asked / 10, .seconds(5)).share(random), reason: .asked)
  }

  /// Another packet that was on its way when one failed is answered so. - Returns: nil: the pause stays as it is.
  mutating func asked(for retryAfter: Duration, random: UInt64, now: Duration) -> UploadState.Pause? {
    guard let asked = Self.pause(asked: retryAfter, random, now) else { return nil }
    if let pause, pause.reason == .asked, pause.until >= asked.until { return nil }
    (pause, failuresInRow) = (asked, max(1, failuresInRow))
    return asked
  }

  /// The collector took a packet.
  mutating func succeeded() {
    (failuresInRow, pause) = (0, nil)
  }

  /// Another collector, or another way to it: what was counted against the old one is void.
  mutating func forget() { self = RetryRecord() }

  var isClean: Bool { failuresInRow == 0 }

  /// nil: nothing failed, or an older version counted it.
  var collector: CollectorAddress? { lastFailure?.collector }
}

extension RetryRecord {
  /// nil when there is nothing to keep: the note is removed.
  func note(now: Instant, bootID: String = KernelBoot.id ?? "") -> [UInt8]? {
    guard !isClean else { return nil }
    var members: [JSONValue.Member] = [.init("failures", .int(failuresInRow))]
    if let pause {
      members.append(.init("reason", .string(pause.reason.rawValue)))
      let rest = pause.until - now.uptime
      let whole = rest.wholeMilliseconds
      // Rounded up: nothing leaves before the time that a collector asked for.
      members.append(.init("pauseMs", .int(max(0, .milliseconds(whole) < rest ? whole + 1 : whole))))
      members += NoteStamp.members(now, bootID)
    }
    if let lastFailure {
      members.append(.init("failedUnixMs", .int(lastFailure.unixMilliseconds)))
      members.append(.init("cause", .string(lastFailure.cause)))
      if let status = lastFailure.status { members.append(.init("status", .int(status))) }
      if let code = lastFailure.code { members.append(.init("code", .string(code.rawValue))) }
      if let collector = lastFailure.collector { members.append(.init("collector", .string(collector.base))) }
    }
    return JSONValue.object(members).bytes
  }

  /// A damaged note counts as a missing one. The pause continues by the uptime; of the time before this boot nothing is
  /// known, and no wall clock is asked. An older version's note does not say when it was written: its pause begins again.
  init(note: [UInt8], now: Instant, bootID: String = KernelBoot.id ?? "") {
    guard let value = try? JSONValue(parsing: note), let failures = value["failures"]?.int, failures > 0 else { return }
    failuresInRow = failures
    if let time = value["failedUnixMs"]?.int, let cause = value["cause"]?.string {
      lastFailure = Failure(
        unixMilliseconds: Int64(time), status: value["status"]?.int,
        code: value["code"]?.string.flatMap { PacketRefusal(rawValue: $0) }, cause: cause,
        collector: value["collector"]?.string.map(CollectorAddress.init))
    }
    guard let reason = value["reason"]?.string.flatMap(UploadState.Pause.Reason.init(rawValue:)),
      let length = value["pauseMs"]?.int
    else { return }
    let longest = (RetryAfter.longest + .seconds(5)).wholeMilliseconds
    // Up to a millisecond less went by: both times are whole ones.
    let rest = max(0, min(Int64(length), longest) - max(0, NoteStamp.elapsed(since: value, now, bootID).atLeast - 1))
    pause = UploadState.Pause(until: now.uptime + .milliseconds(rest), reason: reason)
  }
}
