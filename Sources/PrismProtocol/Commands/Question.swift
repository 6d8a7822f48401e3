public import PrismBase

/// A question about the kept reports of a device: the arguments of the command `ask` (docs/recorder.md, "Questions").
public struct Question: Equatable, Sendable {
  /// The answer that is wanted.
  public enum Want: Equatable, Sendable {
    /// The reports themselves: they leave.
    case rows
    /// Their number.
    case count
    /// A sketch of the numbers of this member.
    case numbers(of: String)
  }

  /// The most days that `last` may say.
  public static let lastDaysMax: Int64 = 10 * 366

  /// The type of the reports, or a pattern that `ask.allow` has in the same words.
  public var type: ReportType
  public var want = Want.count
  /// A member: the answer is one for each of its values. Not with `rows`.
  public var by: String?
  /// Only reports that came in the last seconds; nil: all.
  public var lastSeconds: Int?
  /// Only reports of this time and later, by their created time: milliseconds since 1970; nil: all.
  public var since: Int64?
  /// Only reports before this time.
  public var until: Int64?
  /// A member of their meta, for `condition`.
  public var field: String?
  /// nil: all reports.
  public var condition: ReportTrigger.Condition?
  /// The most that may leave each device, 1 KiB to 1 GiB.
  public var bytesMax = 256 << 10

  /// - Throws: `question` for arguments that are no question.
  public init(_ args: [String: CommandValue]) throws(CommandFault) {
    var rest = CommandArguments(args, of: .ask)
    guard let name = try rest.text("type"), let type = ReportType(entry: name) else {
      throw .question("type must be the type of reports, or a pattern of types")
    }
    self.type = type
    let (isRows, of) = (try rest.truth("rows"), try rest.text("of"))
    guard !isRows || of == nil else { throw .question("rows must be true or false, and not true with `of`") }
    want = isRows ? .rows : of.map { .numbers(of: $0) } ?? .count
    by = try rest.text("by")
    guard by == nil || want != .rows else { throw .question("`by` has no meaning for rows") }
    lastSeconds = try rest.number("last", 1...Self.lastDaysMax * 86_400).map { Int($0) }
    (since, until) = (try rest.number("since", 0...(.max)), try rest.number("until", 0...(.max)))
    if let since, let until, since >= until { throw .question("until must be later than since") }
    if let (field, condition) = try rest.condition() { (self.field, self.condition) = (field, condition) }
    if let kibibytes = try rest.number("maxKByte", 1...1_048_576) { bytesMax = Int(kibibytes) << 10 }
    try rest.end()
  }
}

/// The answer of a device to a question: the `result` of its command.
public struct QuestionAnswer: Equatable, Sendable {
  /// Groups of an answer at most; reports with further values of `by` are in `others`.
  public static let groupsMax = 32
  /// Bytes of an answer as JSON at most; the scale of sketches falls until they fit.
  public static let bytesMax = 5000

  /// Reports that it is about.
  public var rows = 0
  /// Of those that leave, metas and payloads.
  public var bytes = 0
  /// Kept reports that were looked at.
  public var looked = 0
  /// The time that it took.
  public var milliseconds = 0
  /// One for each value of `by`, as text; without `by` one of the name "".
  public var groups: [ExactText: Sketch] = [:]
  /// Of the reports whose value had no room, or has over 64 bytes, and of those without the member.
  public var others = Sketch()

  public init() {}

  /// Adds a number to the sketch of a group. - Parameter name: nil: the report has no such member.
  public mutating func add(_ value: Double, to name: String?) {
    guard let name else { return others.add(value) }
    let group = ExactText(name)
    guard name.utf8.count <= 64, groups[group] != nil || groups.count < Self.groupsMax else { return others.add(value) }
    groups[group, default: Sketch()].add(value)
  }

  /// Adds the answer of another device. All groups have room.
  public mutating func merge(_ other: QuestionAnswer) {
    (rows, bytes) = (Sketch.sum(rows, other.rows), Sketch.sum(bytes, other.bytes))
    (looked, milliseconds) = (Sketch.sum(looked, other.looked), Sketch.sum(milliseconds, other.milliseconds))
    groups.merge(other.groups) { first, second in
      var sum = first
      sum.merge(second)
      return sum
    }
    others.merge(other.others)
  }

  /// The whole answer.
  public var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("rows", .int(rows)), .init("bytes", .int(bytes)), .init("looked", .int(looked)),
      .init("ms", .int(milliseconds)),
    ]
    if !groups.isEmpty {
      members.append(
        .init("groups", .object(groups.sorted { $0.key < $1.key }.map { .init($0.key.text, $0.value.json) })))
    }
    if others.count > 0 { members.append(.init("others", others.json)) }
    return .object(members)
  }

  /// `json` of at most `bytesMax`: sketches become coarser, then the least groups join the others, until it fits.
  public var fitted: JSONValue {
    var (answer, scale) = (self, groups.values.map(\.scale).max() ?? 0)
    while answer.json.bytes.count > Self.bytesMax, scale > -3 {
      scale -= 1
      for key in groups.keys { answer.groups[key]!.coarsen(to: scale) }
      answer.others.coarsen(to: scale)
    }
    while answer.json.bytes.count > Self.bytesMax,
      let least = answer.groups.min(by: { $0.value.count < $1.value.count })
    {
      answer.groups[least.key] = nil
      answer.others.merge(least.value)
    }
    return answer.json
  }

  /// nil if it is no answer that a device writes.
  public init?(json: JSONValue) {
    let numbers = ["rows", "bytes", "looked", "ms"].compactMap { json[$0]?.int }
    guard numbers.count == 4, numbers.allSatisfy({ (0..<1 << 53).contains($0) }) else { return nil }
    (rows, bytes, looked, milliseconds) = (numbers[0], numbers[1], numbers[2], numbers[3])
    for member in json["groups"]?.object ?? [] {
      let name = ExactText(member.key)
      guard let sketch = Sketch(json: member.value), groups[name] == nil else { return nil }
      groups[name] = sketch
    }
    if let value = json["others"] {
      guard let sketch = Sketch(json: value) else { return nil }
      others = sketch
    }
  }
}
