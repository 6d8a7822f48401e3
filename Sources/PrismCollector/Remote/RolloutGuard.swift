import PrismProtocol

/// The condition under which a rollout ends itself: the chosen devices crash, or send reports of a type, more often than the others
/// (docs/releases.md).
struct RolloutGuard: Sendable, Equatable {
  static let members = ["rate", "type", "namespace", "app", "worse", "hours", "action"]

  /// The rates that are compared. A device counts until its first event.
  enum Rate: String, Sendable, CaseIterable {
    /// Crashes by the time in use, sessions that ended by one, devices with one by the hours that they report, and reports of
    /// a type by these hours.
    case crashFreeHours, crashFreeSessions, crashFreeDevices, reports

    /// The measure of the exposure until an event.
    var unit: String {
      switch self {
      case .crashFreeHours: "hours"
      case .crashFreeSessions: "sessions"
      case .crashFreeDevices, .reports: "device hours"
      }
    }
  }
  enum Action: String, Sendable, CaseIterable { case rollBack, pause }

  var rate = Rate.crashFreeHours
  /// The type of the reports that are counted; nil: of the other rates.
  var type: String?
  /// Of these reports only; nil: of all.
  var namespace: String?, app: String?
  /// Percent by which the rate may be worse.
  var worse = 10
  /// Hours of the chosen devices, before which there is no verdict: in use, or reported for the rate of reports.
  var hours = 24
  var action = Action.rollBack

  /// - Throws: 400 naming the member that is wrong.
  init(_ json: JSONValue) throws(CollectorRefusal) {
    let known = Self.members.joined(separator: ", ")
    guard let object = json.object else {
      throw CollectorRefusal(400, "guard: must be an object; members are \(known)")
    }
    if let unknown = object.first(where: { !Self.members.contains($0.key) }) {
      throw CollectorRefusal(400, "guard.\(unknown.key.prefix(64)): is no member; there are \(known)")
    }
    rate = try Self.word(json, "rate") ?? rate
    action = try Self.word(json, "action") ?? action
    type = try Self.text(json, "type")
    (namespace, app) = (try Self.text(json, "namespace"), try Self.text(json, "app"))
    worse = try Self.number(json, "worse", 0...1000) ?? worse
    hours = try Self.number(json, "hours", 1...1_000_000) ?? hours
    guard (rate == .reports) == (type != nil), type.map({ ReportType($0) != nil && $0 != ReleaseReport.type }) != false
    else {
      throw CollectorRefusal(
        400, "guard.type: name the type of the reports that are counted, such as lag, with the rate reports only")
    }
    guard rate != .reports || app == nil else {
      throw CollectorRefusal(400, "guard.app: the rate reports counts those of all apps; leave it out")
    }
  }

  private static func word<Word: RawRepresentable<String> & CaseIterable>(
    _ json: JSONValue, _ key: String
  ) throws(CollectorRefusal) -> Word? {
    guard let value = json[key] else { return nil }
    guard let word = value.string.flatMap({ Word(rawValue: $0) }) else {
      throw CollectorRefusal(
        400, "guard.\(key): must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return word
  }

  private static func text(_ json: JSONValue, _ key: String) throws(CollectorRefusal) -> String? {
    guard let value = json[key], value != .null else { return nil }
    guard let text = value.string, (1...AppHealth.textBytesMax).contains(text.utf8.count) else {
      throw CollectorRefusal(400, "guard.\(key): must be a text of 1 to \(AppHealth.textBytesMax) bytes, or null")
    }
    return text
  }

  private static func number(
    _ json: JSONValue, _ key: String, _ range: ClosedRange<Int>
  ) throws(CollectorRefusal) -> Int? {
    guard let value = json[key] else { return nil }
    guard let number = value.int, range.contains(number) else {
      throw CollectorRefusal(
        400, "guard.\(key): must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  var json: JSONValue {
    JSONValue([
      "rate": rate.rawValue, "type": type, "namespace": namespace, "app": app, "worse": worse, "hours": hours,
      "action": action.rawValue,
    ])
  }
}

/// Counts the chosen devices and the others of a rollout, report by report in their order, and judges. It comes to the same at each
/// replica, and after a start. Pure.
struct GuardCount: Sendable {
  /// Reports that came within this time are one look.
  static let look: Int64 = 600_000

  enum Arm: Sendable { case chosen, others }

  /// The word of the guard.
  enum Verdict: String, Sendable { case notEnoughData, notWorse, worse }

  let rule: RolloutGuard
  private var test: RateTest
  /// Of the look that goes on.
  private var current: (number: Int64, chosen: RateTest.Arm, others: RateTest.Arm) = (0, .init(), .init())
  /// Devices that crashed: each counts until then. Else one that crashes each minute would count as many.
  private var crashed: Set<String> = []
  /// By device: the side that sent a report of the type. It counts with the device's next hour of this side.
  private var sent: [String: Arm] = [:]
  private(set) var chosenSeconds = 0
  private(set) var devices: (chosen: Set<String>, others: Set<String>) = ([], [])

  init(_ rule: RolloutGuard) {
    self.rule = rule
    test = RateTest(tolerated: 1 + Double(rule.worse) / 100)
  }

  /// - Parameter arm: of its device for the whole hour.
  mutating func take(_ report: ReleaseReport, _ arm: Arm) {
    end(before: report.receivedTime)
    guard rule.namespace ?? report.namespace == report.namespace, !crashed.contains(report.device) else { return }
    let (new, seconds) = counted(report, arm)
    if arm == .chosen { chosenSeconds += seconds }
    guard new != RateTest.Arm() else { return }
    if new.events > 0 { crashed.insert(report.device) }
    switch arm {
    case .chosen:
      devices.chosen.insert(report.device)
      current.chosen = .init(
        exposure: current.chosen.exposure + new.exposure, events: current.chosen.events + new.events)
    case .others:
      devices.others.insert(report.device)
      current.others = .init(
        exposure: current.others.exposure + new.exposure, events: current.others.events + new.events)
    }
  }

  /// An hour by the rate, and the seconds of it that are data.
  private func counted(_ report: ReleaseReport, _ arm: Arm) -> (RateTest.Arm, seconds: Int) {
    let uses = report.uses.filter { (rule.app ?? $0.app) == $0.app }
    let seconds = uses.reduce(0) { $0 + $1.seconds }
    let hours = report.isFurther ? 0 : Double(report.seconds) / 3600
    let isCrashed = uses.contains { $0.crashes > 0 }
    switch rule.rate {
    case .crashFreeHours: return (.init(exposure: Double(seconds) / 3600, events: isCrashed ? 1 : 0), seconds)
    case .crashFreeDevices: return (.init(exposure: uses.isEmpty ? 0 : hours, events: isCrashed ? 1 : 0), seconds)
    case .crashFreeSessions:
      let sessions = uses.reduce(0) { $0 + $1.sessions }
      return (.init(exposure: Double(sessions), events: uses.contains { $0.crashedSessions > 0 } ? 1 : 0), seconds)
    case .reports:
      return (
        .init(exposure: hours, events: sent[report.device] == arm ? 1 : 0), report.isFurther ? 0 : report.seconds
      )
    }
  }

  /// Notes a report of the rule's type. - Parameter arm: of its device when it happened.
  mutating func note(_ device: String, _ arm: Arm) {
    if !crashed.contains(device) { sent[device] = arm }
  }

  /// Ends the look that goes on, if it began before that of `time`.
  mutating func end(before time: Int64) {
    let number = time / Self.look
    guard number > current.number else { return }
    test.take(chosen: current.chosen, others: current.others)
    current = (number, .init(), .init())
  }

  var verdict: Verdict {
    guard chosenSeconds >= rule.hours * 3600, test.others.exposure > 0 else { return .notEnoughData }
    return test.isWorse ? .worse : .notWorse
  }

  var reason: String {
    let rate = { (arm: RateTest.Arm) in arm.exposure > 0 ? Double(arm.events) / arm.exposure * 1000 : 0 }
    let round = { (value: Double) in (value * 100).rounded() / 100 }
    let (name, did) = rule.type.map { ("reports of \($0)", "sent one") } ?? (rule.rate.rawValue, "crashed")
    return "\(name): \(test.chosen.events) of \(devices.chosen.count) chosen devices \(did), "
      + "\(round(rate(test.chosen))) in 1000 \(rule.rate.unit); of the others \(test.others.events) of \(devices.others.count), "
      + "\(round(rate(test.others)))"
  }

  var json: JSONValue {
    let arm = { (arm: RateTest.Arm, devices: Set<String>) in
      JSONValue(["devices": devices.count, "crashed": arm.events]).adding([
        "exposure": JSONValue.double(arm.exposure)
      ])
    }
    return JSONValue([
      "verdict": verdict.rawValue, "reason": reason, "evidence": JSONValue.double(min(test.evidence, 1e12)),
      "needed": JSONValue.double(1 / RateTest.alpha), "hours": chosenSeconds / 3600,
      "chosen": arm(test.chosen, devices.chosen), "others": arm(test.others, devices.others),
    ])
  }
}
