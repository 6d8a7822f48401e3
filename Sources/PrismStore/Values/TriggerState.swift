import PrismProtocol

/// The counts of one trigger, through restarts. It is a note, written in the transaction of the reports.
public struct TriggerState: Sendable, Equatable {
  static let keyPrefix = "trigger."

  /// How often it fired, and how many rows it let go.
  public var fired = 0, rows = 0
  /// How often its bytes of a day were used up, and how often it would have fired too soon after the last time.
  public var overBudget = 0, tooSoon = 0
  /// How often the collector had enough of other devices, so that its rows stayed kept.
  public var declined = 0
  /// By the held clock, in milliseconds.
  var lastFired: Int64?, dayBegan: Int64 = 0, countBegan: Int64 = 0
  var dayBytes = 0, count = 0
  var following = Following()

  /// The reports that go as they come, after it fired.
  struct Following: Sendable, Equatable {
    /// How many still go, and the text of the value that they share.
    var count = 0, same: String?
    /// The collector has not answered yet whether they may leave.
    var isAsked = false
  }

  public init() {}

  init(note: [UInt8]) {
    guard let json = try? JSONValue(parsing: note) else { return }
    func number(_ key: String) -> Int { json[key]?.int ?? 0 }
    (fired, rows, overBudget, tooSoon) = (number("fired"), number("rows"), number("overBudget"), number("tooSoon"))
    (dayBytes, count, declined) = (number("dayBytes"), number("count"), number("declined"))
    (dayBegan, countBegan) = (Int64(number("dayBegan")), Int64(number("countBegan")))
    lastFired = json["lastFired"]?.int.map { Int64($0) }
    following = Following(
      count: number("after"), same: json["same"]?.string, isAsked: json["isAsked"]?.bool ?? false)
  }

  var note: [UInt8] {
    let json: JSONValue = [
      "fired": .int(fired), "rows": .int(rows), "overBudget": .int(overBudget), "tooSoon": .int(tooSoon),
      "dayBytes": .int(dayBytes), "count": .int(count), "after": .int(following.count), "dayBegan": .int(Int(dayBegan)),
      "countBegan": .int(Int(countBegan)), "lastFired": lastFired.map { .int(Int($0)) } ?? .null,
      "same": following.same.map { .string($0) } ?? .null, "isAsked": .bool(following.isAsked),
      "declined": .int(declined),
    ]
    return json.bytes
  }
}

/// The reports of one namespace that were answered without a row of their own, through restarts. They change in the same
/// transaction as the rows that came with them, and are a note of the namespace.
public struct FilterCounts: Sendable, Equatable {
  static let key = "filtered"

  /// Left out by the `sample` of their type.
  public var sampled = 0
  /// Counted on the row of an equal report, by the `collapse` of their type.
  public var collapsed = 0

  /// Nothing was left out.
  public init() {}

  /// - Parameter note: as `note` gives it; what can't be read counts 0.
  init(note: [UInt8]) {
    let value = try? JSONValue(parsing: note)
    sampled = value?["sampled"]?.int ?? 0
    collapsed = value?["collapsed"]?.int ?? 0
  }

  var note: [UInt8] { (["sampled": .int(sampled), "collapsed": .int(collapsed)] as JSONValue).bytes }

  mutating func add(_ other: Self) {
    sampled += other.sampled
    collapsed += other.collapsed
  }
}
