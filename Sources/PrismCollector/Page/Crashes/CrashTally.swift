/// Crashes of one device or one build within a group.
struct CrashTally: Sendable, Equatable {
  var count = 0
  /// When the newest came, milliseconds since 1970.
  var lastTime: Int64 = 0
  /// The id of the newest crash; 0 after that one was taken out.
  var lastReport: Int64 = 0
  /// When the last one happened, milliseconds since 1970; 0 after that one was taken out.
  var lastHappened: Int64 = 0

  mutating func add(_ crash: CrashReport) {
    count += 1
    (lastTime, lastReport) = (max(lastTime, crash.receivedTime), max(lastReport, crash.firstRow))
    lastHappened = max(lastHappened, crash.happenedTime)
  }

  /// - Returns: nil: no crash is left.
  func without(_ crash: CrashReport) -> CrashTally? {
    guard count > 1 else { return nil }
    return CrashTally(
      count: count - 1, lastTime: lastTime, lastReport: lastReport == crash.firstRow ? 0 : lastReport,
      lastHappened: lastHappened == crash.happenedTime ? 0 : lastHappened)
  }
}
