import PrismProtocol

/// One entry of `triggers` as it was written.
struct TriggerDraft: Sendable {
  /// All but its condition.
  var trigger = ReportTrigger(name: "", on: .appCrash)
  var equals: String?
  var contains: String?
  var from: Int?
  var to: Int?

  fileprivate var condition: ReportTrigger.Condition? {
    if let equals { return .equals(equals) }
    if let contains { return .contains(contains) }
    guard from != nil || to != nil, from ?? .min <= to ?? .max else { return nil }
    return .range((from ?? .min)...(to ?? .max))
  }

  fileprivate var conditions: Int {
    [equals != nil, contains != nil, from != nil || to != nil].filter(\.self).count
  }

  fileprivate var settled: ReportTrigger {
    var trigger = trigger
    trigger.condition = condition
    return trigger
  }
}

extension TriggerDraft {
  init(_ trigger: ReportTrigger) {
    self.trigger = trigger
    switch trigger.condition {
    case .equals(let text): equals = text
    case .contains(let part): contains = part
    case .range(let range):
      from = range.lowerBound == .min ? nil : range.lowerBound
      to = range.upperBound == .max ? nil : range.upperBound
    case nil: break
    }
  }

  private typealias Key = ConfigurationKey<TriggerDraft>
  private static var number: ValueForm<Int> { .integer(-1_000_000_000_000...1_000_000_000_000) }

  static let keys = KeyTable(
    [
      Key("name", .triggerName, required: \.trigger.name, "its name, which the reports leave with"),
      Key("on", .reportType, required: \.trigger.on, "the type of the reports that fire it"),
      Key("field", .member, optional: \.trigger.field, "the member of their meta that the condition is about"),
      Key("equals", .text(bytesMax: 256), optional: \.equals, "fires if the member has this value"),
      Key("contains", .text(bytesMax: 256), optional: \.contains, "fires if the member has this text in it"),
      Key("from", number, optional: \.from, "fires if the member is a number of this or more"),
      Key("to", number, optional: \.to, "fires if the member is a number of this or less"),
      Key(
        "count", .integer(1...1_000_000, unit: "reports"), at: \.trigger.count, "fires with this number within `second`"
      ),
      Key("second", .integer(1...86_400, unit: "seconds"), at: \.trigger.seconds, "the time for `count`"),
      Key(
        "types", .list(of: .monitoredType, "a list of types or patterns"), at: \.trigger.types, default: "all",
        "the kept reports that go"),
      Key(
        "same", .member, optional: \.trigger.same,
        "a member that they have in common with the report that fires, for example `APP_NAME`"),
      Key(
        "before", .integer(0...10_000, unit: "reports"), at: \.trigger.before,
        "the most that go, the newest up to the report that fires"),
      Key("after", .integer(0...10_000, unit: "reports"), at: \.trigger.after, "those that go as they come after it"),
      Key(
        "everySecond", .integer(0...86_400, unit: "seconds"), at: \.trigger.everySeconds,
        "the least time between two times that it fires"),
      Key(
        "maxMByteDay", .mebibytes(1...1024), at: \.trigger.bytesMax,
        "the most that goes in 24 hours; what is over it stays, and is counted"),
      Key(
        "maxDevices", .integer(ReportTrigger.devicesRange, unit: "devices"), optional: \.trigger.devicesMax,
        "the most devices that send for it in 24 hours; the collector counts them"),
    ], defaults: TriggerDraft())
}

extension ValueForm where Value == String {
  fileprivate static var triggerName: Self {
    .string("a name of 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit") { RecordTableName($0) != nil }
  }
}

extension ValueForm where Value == [ReportTrigger] {
  static var triggers: Self {
    let most = ReportTrigger.countMax
    return ValueForm<[TriggerDraft]>.list(
      of: .object(TriggerDraft.keys, "a map like {name: crash, on: appCrash, before: 200}"),
      "a list of at most \(most) triggers", atMost: (most, "triggers")
    ).checked(faults).converted({ $0.map(\.settled) }, back: { $0.map { TriggerDraft($0) } })
  }

  @Sendable private static func faults(
    _ drafts: [TriggerDraft], _ index: Int
  ) -> [(member: String, message: String)] {
    let (draft, trigger) = (drafts[index], drafts[index].trigger)
    var faults: [(member: String, message: String)] = []
    if drafts[..<index].contains(where: { $0.trigger.name == trigger.name }) {
      faults.append(("name", "is \(trigger.name), which another trigger has already"))
    }
    if draft.conditions > 1 {
      faults.append(("equals", "is one condition of several, must be the only one: equals, contains, or from and to"))
    }
    if (trigger.field == nil) != (draft.conditions == 0) {
      faults.append(
        trigger.field == nil
          ? ("field", "is missing; the condition needs the member that it is about")
          : ("field", "has no condition; add equals, contains, from or to"))
    }
    if draft.conditions == 1, draft.condition == nil { faults.append(("from", "is more than `to`")) }
    if trigger.before == 0, trigger.after == 0 {
      faults.append(("before", "is missing; a trigger lets reports go `before` or `after` the one that fires it"))
    }
    return faults
  }
}
