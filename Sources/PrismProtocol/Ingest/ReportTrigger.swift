/// Lets kept reports go when a report of a type is stored (docs/recorder.md, "Triggers").
public struct ReportTrigger: Sendable, Equatable {
  /// Rules of one namespace at most.
  public static let countMax = 16

  /// The condition on a member of the report; a report without the member does not meet it.
  public enum Condition: Sendable, Equatable {
    /// The text of a string, or a number or boolean as JSON writes it.
    case equals(String)
    /// A part of a string.
    case contains(String)
    /// A number, both ends included.
    case range(ClosedRange<Int>)
  }

  /// Unique in the namespace; the reports leave with it.
  public var name: String
  /// The type of the reports that are looked at.
  public var on: ReportType
  /// A member of their meta, for `condition`.
  public var field: String?
  /// The condition on the member; nil: each report counts.
  public var condition: Condition?
  /// The number of reports within `seconds`, 1 or more.
  public var count = 1
  /// From the first of them on.
  public var seconds = 60
  /// Types and patterns of the kept reports that go; empty: all.
  public var types: [ReportType] = []
  /// A member that has the same value in them as in the report that fires; nil: all of the namespace go.
  public var same: String?
  /// The most kept reports that go, the newest ones up to the report that fires.
  public var before = 0
  /// Reports that go as they come after it.
  public var after = 0
  /// The least time between two times that it fires.
  public var everySeconds = 60
  /// The most bytes that go in 24 hours.
  public var bytesMax = 10 << 20
  /// The most devices that send for it in 24 hours, as the collector counts; nil: it is not asked.
  public var devicesMax: Int?
  /// Of `devicesMax`.
  public static let devicesRange = 1...1_000_000

  public init(name: String, on: ReportType) { (self.name, self.on) = (name, on) }

  /// Whether kept reports of a type may go.
  public func lets(_ type: ReportType) -> Bool {
    types.isEmpty || types.contains { $0 == type || $0.isPattern && $0.matches(type) }
  }
}

extension ReportTrigger.Condition {
  /// Whether the value of the member meets it. - Parameter value: nil: there is no such member.
  public func isMet(by value: JSONValue?) -> Bool {
    guard let value else { return false }
    switch self {
    case .equals(let text):
      if (value.string ?? value.text).utf8.elementsEqual(text.utf8) { return true }
      if let whole = value.int, let wanted = Int(text) { return whole == wanted }
      return value.double.map { $0.isFinite && $0 == Double(text) } ?? false
    case .contains(let part): return value.string?.utf8.contains(part.utf8) ?? false
    case .range(let range):
      if let number = value.int { return range.contains(number) }
      guard let number = value.double else { return false }
      return Double(range.lowerBound) <= number && number <= Double(range.upperBound)
    }
  }
}

/// The rules of a namespace that its reports are stored by.
public struct ReportRules: Sendable, Equatable {
  /// Fields of records that reports get.
  public var enrichments: [RecordEnrichment]
  /// Those that let kept reports go.
  public var triggers: [ReportTrigger]
  /// Crashes are counted by app and version.
  public var countsHealth: Bool
  /// Types that become one row a window and group; a name counts before a pattern, and `*` last.
  public var reductions: [ReportReduction]
  /// Types and patterns that triggers of a server may let go; empty: they don't hold.
  public var serverTypes: [ReportType]

  public init(
    enrichments: [RecordEnrichment] = [], triggers: [ReportTrigger] = [], countsHealth: Bool = false,
    reductions: [ReportReduction] = [], serverTypes: [ReportType] = []
  ) {
    (self.enrichments, self.triggers, self.countsHealth) = (enrichments, triggers, countsHealth)
    (self.reductions, self.serverTypes) = (reductions, serverTypes)
  }

  /// The rule of a type; nil: each of its reports is a row.
  public func reduction(of type: ReportType) -> ReportReduction? {
    if reductions.isEmpty || type == .appCrash { return nil }
    let own = reductions.first { $0.type == type }
    let rule = own ?? reductions.first { $0.type.isPattern && $0.type.matches(type) }
    return rule.flatMap { $0.seconds > 0 ? $0 : nil }
  }
}
