import PrismBase
import PrismProtocol

/// The condition under which a rollout ends itself: the chosen devices crash more often than the others (docs/releases.md).
struct RolloutGuard: Sendable, Equatable {
  static let members = ["rate", "namespace", "app", "worse", "hours", "action"]

  /// The rates that are compared: crashes by the time in use, or by sessions.
  enum Rate: String, Sendable, CaseIterable { case crashFreeHours, crashFreeSessions }
  enum Action: String, Sendable, CaseIterable { case rollBack, pause }

  var rate = Rate.crashFreeHours
  /// Of these reports only; nil: of all.
  var namespace: String?, app: String?
  /// Percent by which the rate may be worse.
  var worse = 10
  /// Hours in use of the chosen devices, before which there is no verdict.
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
    (namespace, app) = (try Self.text(json, "namespace"), try Self.text(json, "app"))
    worse = try Self.number(json, "worse", 0...1000) ?? worse
    hours = try Self.number(json, "hours", 1...1_000_000) ?? hours
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
      "rate": rate.rawValue, "namespace": namespace, "app": app, "worse": worse, "hours": hours,
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
    var new = RateTest.Arm()
    for use in report.uses where (rule.app ?? use.app) == use.app {
      let bad = rule.rate == .crashFreeHours ? use.crashes : use.crashedSessions
      new.exposure += rule.rate == .crashFreeHours ? Double(use.seconds) / 3600 : Double(use.sessions)
      if bad > 0 { new.events = 1 }
      if arm == .chosen { chosenSeconds += use.seconds }
    }
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

  /// The reason, for people.
  var reason: String {
    let rate = { (arm: RateTest.Arm) in arm.exposure > 0 ? Double(arm.events) / arm.exposure * 1000 : 0 }
    let round = { (value: Double) in (value * 100).rounded() / 100 }
    let unit = rule.rate == .crashFreeHours ? "hours" : "sessions"
    return "\(rule.rate.rawValue): \(test.chosen.events) of \(devices.chosen.count) chosen devices crashed, "
      + "\(round(rate(test.chosen))) in 1000 \(unit); of the others \(test.others.events) of \(devices.others.count), "
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
