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
  /// By user: one does not use up the time or the bytes of others.
  var users: [UInt32: User] = [:]

  /// The reports of one user: how they fired it, and those that it let go.
  struct User: Sendable, Equatable {
    /// By the held clock, in milliseconds.
    var lastFired: Int64?
    /// Reports that count within the trigger's time, and bytes that it let go within a day.
    var count = SlidingSum(), bytes = SlidingSum()
    var following = Following()
  }

  /// The reports that go as they come, after it fired.
  struct Following: Sendable, Equatable {
    /// How many still go, and the text of the value that they share.
    var count = 0, same: String?
    /// The collector has not answered yet whether they may leave.
    var isAsked = false
  }

  private static let usersMax = 32

  public init() {}

  init(note: [UInt8]) {
    guard let json = try? JSONValue(parsing: note) else { return }
    func number(_ key: String) -> Int { json[key]?.int ?? 0 }
    (fired, rows, overBudget, tooSoon) = (number("fired"), number("rows"), number("overBudget"), number("tooSoon"))
    declined = number("declined")
    for member in json["users"]?.object ?? [] {
      guard let id = UInt32(member.key) else { continue }
      let user = member.value
      users[id] = User(
        lastFired: user["lastFired"]?.int.map { Int64($0) }, count: SlidingSum(user["count"]),
        bytes: SlidingSum(user["bytes"]),
        following: Following(
          count: user["after"]?.int ?? 0, same: user["same"]?.string, isAsked: user["isAsked"]?.bool ?? false))
    }
  }

  var note: [UInt8] {
    let users = users.sorted { $0.key < $1.key }.map { id, user in
      let json: JSONValue = [
        "lastFired": user.lastFired.map { .int(Int($0)) } ?? .null, "count": user.count.json, "bytes": user.bytes.json,
        "after": .int(user.following.count), "same": user.following.same.map { .string($0) } ?? .null,
        "isAsked": .bool(user.following.isAsked),
      ]
      return JSONValue.Member("\(id)", json)
    }
    let json: JSONValue = [
      "fired": .int(fired), "rows": .int(rows), "overBudget": .int(overBudget), "tooSoon": .int(tooSoon),
      "declined": .int(declined), "users": .object(users),
    ]
    return json.bytes
  }

  /// Reports go as they come.
  var isFollowed: Bool { users.contains { $0.value.following.count > 0 } }

  /// Changes what a user did. Past a bound of users the one that let least go is forgotten.
  mutating func change<Result, Fault: Error>(
    _ id: UInt32, _ body: (inout User) throws(Fault) -> Result
  ) throws(Fault) -> Result {
    if users[id] == nil, users.count >= Self.usersMax,
      let least = users.min(by: { ($0.value.bytes.total, $0.key) < ($1.value.bytes.total, $1.key) })?.key
    {
      users[least] = nil
    }
    return try body(&users[id, default: User()])
  }
}

/// A sum of amounts over the last time, in few numbers: amounts that are close in time are joined, and count until the later
/// one's time is over.
struct SlidingSum: Sendable, Equatable {
  private static let entriesMax = 16

  private struct Entry: Equatable {
    var time: Int64, amount: Int
  }

  /// The oldest first.
  private var entries: [Entry] = []

  init() {}

  /// - Parameter json: as `json` gives it.
  init(_ json: JSONValue?) {
    let numbers = json?.array?.compactMap(\.int) ?? []
    entries = stride(from: 1, to: numbers.count, by: 2).prefix(Self.entriesMax).map {
      Entry(time: Int64(numbers[$0 - 1]), amount: min(max(0, numbers[$0]), 1 << 40))
    }
  }

  var json: JSONValue { .array(entries.flatMap { [.int(Int($0.time)), .int($0.amount)] }) }

  var total: Int { entries.reduce(0) { $0 + $1.amount } }

  /// Amounts as old as `age` count no more. - Parameter now: milliseconds, as all times.
  mutating func forget(after age: Int64, _ now: Int64) { entries.removeAll { now - $0.time >= age } }

  mutating func add(_ amount: Int, at now: Int64) {
    if entries.last?.time == now {
      entries[entries.count - 1].amount += amount
    } else {
      entries.append(Entry(time: now, amount: amount))
    }
    guard entries.count > Self.entriesMax else { return }
    let pairs = entries.indices.dropLast()
    guard let first = pairs.min(by: { gap($0) < gap($1) }) else { return }
    entries[first + 1].amount += entries[first].amount
    entries.remove(at: first)
  }

  private func gap(_ place: Int) -> Int64 { entries[place + 1].time - entries[place].time }

  /// From the newest on.
  mutating func take(_ amount: Int) {
    var left = amount
    while left > 0, let last = entries.popLast() {
      if last.amount > left { entries.append(Entry(time: last.time, amount: last.amount - left)) }
      left -= last.amount
    }
  }
}

/// The reports of one namespace that were answered without a row of their own, and ids that were forgotten, through restarts. They change in the same
/// transaction as the rows that came with them, and are a note of the namespace.
public struct FilterCounts: Sendable, Equatable {
  static let key = "filtered"

  /// Left out by the `sample` of their type.
  public var sampled = 0
  /// Counted on the row of an equal report, by the `collapse` of their type.
  public var collapsed = 0

  /// Ids of reports that left, forgotten before their 24 h: their user held too many.
  public var forgottenIDs = 0
  /// Groups of `reduce` that rested, and were forgotten before their day: others needed room.
  public var forgottenGroups = 0

  /// Nothing was left out.
  public init() {}

  /// - Parameter note: as `note` gives it; what can't be read counts 0.
  init(note: [UInt8]) {
    let value = try? JSONValue(parsing: note)
    sampled = value?["sampled"]?.int ?? 0
    collapsed = value?["collapsed"]?.int ?? 0
    forgottenIDs = value?["forgottenIds"]?.int ?? 0
    forgottenGroups = value?["forgottenGroups"]?.int ?? 0
  }

  var note: [UInt8] {
    let value: JSONValue = [
      "sampled": .int(sampled), "collapsed": .int(collapsed), "forgottenIds": .int(forgottenIDs),
      "forgottenGroups": .int(forgottenGroups),
    ]
    return value.bytes
  }

  mutating func add(_ other: Self) {
    sampled += other.sampled
    collapsed += other.collapsed
    forgottenIDs += other.forgottenIDs
    forgottenGroups += other.forgottenGroups
  }
}
