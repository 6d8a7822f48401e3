import PrismProtocol

/// An operator's word about a group of crashes. A group without one is open.
struct CrashState: Sendable, Equatable {
  enum Condition: String, Sendable, CaseIterable {
    case open, resolved
    /// It is shown again after some more crashes, or at a time.
    case ignored
    /// It was resolved, and a crash of it happened since.
    case regressed
  }

  let fingerprint: String
  var condition: Condition
  /// The operator who changed it, as the log names operators.
  var who: String
  /// When the operator did, milliseconds since 1970.
  var changedTime: Int64
  /// The newest crash of the store at that time: later ones have higher ids. 0: it was never changed, and has notes only.
  var report: Int64
  /// The build with the fix, as the app's name and version, or the version alone; nil: any later crash is a regression.
  var build: String?
  var facts = CrashFacts()
  /// When crashes changed it: that it regressed, or is no longer ignored. Milliseconds since 1970.
  var regressedTime: Int64?

  /// The state of before, or one that was never changed, to note something in it.
  init(noting group: CrashGroup, _ before: CrashState?, at now: Int64) {
    fingerprint = group.fingerprint
    (condition, who, changedTime) = (before?.condition ?? .open, before?.who ?? "", before?.changedTime ?? now)
    (report, build, regressedTime) = (before?.report ?? 0, before?.build, before?.regressedTime)
    facts = before?.facts ?? CrashFacts()
    (facts.rules, facts.sample) = (CrashFrameTable.version, group.reports.last)
  }

  init(
    fingerprint: String, condition: Condition, who: String, changedTime: Int64, report: Int64, build: String? = nil,
    facts: CrashFacts = CrashFacts(), regressedTime: Int64? = nil
  ) {
    (self.fingerprint, self.condition, self.who, self.changedTime) = (fingerprint, condition, who, changedTime)
    (self.report, self.build, self.facts, self.regressedTime) = (report, build, facts, regressedTime)
  }

  /// The condition that crashes and time lead to.
  /// - Parameters:
  ///   - versions: the group's crashes by the app's name and version.
  ///   - count: all its crashes.
  ///   - devices: all its devices.
  ///   - now: milliseconds since 1970.
  func condition(versions: [String: CrashTally], count: Int, devices: Int, now: Int64) -> Condition {
    switch condition {
    case .resolved: versions.contains { isContradicted(by: $0.value, of: $0.key) } ? .regressed : .resolved
    case .ignored: facts.ignored?.isOver(count: count, devices: devices, now: now) == true ? .open : .ignored
    case .open, .regressed: condition
    }
  }

  /// Whether the crashes of one build show that the bug is back: one came and happened since, in a build that has the fix.
  private func isContradicted(by tally: CrashTally, of name: String) -> Bool {
    tally.lastReport > report && tally.lastHappened >= changedTime && hasFix(name)
  }

  /// By the numbers of the versions; if they can't be compared, a build that crashed before has no fix.
  private func hasFix(_ name: String) -> Bool {
    guard let build, name != build else { return true }
    let (one, fixed) = (Self.parts(name), Self.parts(build))
    if fixed.app.isEmpty || one.app == fixed.app, let version = CrashVersion(one.version),
      let first = CrashVersion(fixed.version)
    {
      return !version.isBefore(first)
    }
    return !facts.builds.contains(name)
  }

  private static func parts(_ build: String) -> (app: Substring, version: Substring) {
    guard let space = build.lastIndex(of: " ") else { return ("", build[...]) }
    return (build[..<space], build[build.index(after: space)...])
  }

  /// null: it was never changed.
  var json: JSONValue {
    guard report != 0 else { return .null }
    return [
      "who": .string(who), "changedTime": .int(changedTime), "build": build.map { .string($0) } ?? .null,
      "count": facts.ignored?.more.map { .int($0) } ?? .null,
      "devices": facts.ignored?.moreDevices.map { .int($0) } ?? .null,
      "until": facts.ignored?.until.map { .int($0) } ?? .null,
      "regressedTime": regressedTime.map { .int($0) } ?? .null,
    ]
  }
}
