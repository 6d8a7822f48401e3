import PrismProtocol

/// The reports of one group in a window that is open. It is a note, written in the transaction that answers the reports.
/// A gauge's stays behind its window without reports: what is added to the gauge goes on from there.
struct OpenWindow: Sendable, Equatable {
  static let keyPrefix = "reduce."
  /// The field of numbers that an input counted together.
  private static let partField = "value"
  /// The least hashes of different values that are kept: up to them a number is exact, beyond it is wrong by 6 % (k minimum
  /// values, doi.org/10.1007/3-540-45726-7_1).
  private static let distinctMax = 256
  private static let gaugeTime: Int64 = 86_400_000
  private static let userKey = "SYS_PEER_UID"

  /// Numbers that are no histogram.
  private struct Plain: Equatable {
    /// Fields without percentiles.
    var sums: Set<String> = []
    /// The present value of a gauge; nil: it is no gauge.
    var gauge: Double?
    /// Hashes of 62 bits of the values of a set.
    var distinct: Set<Int> = []
    /// Of a histogram with bounds, which are among the members of the group.
    var buckets: [Int] = []
    var streams = GroupStreams()
  }

  let userID: UInt32
  let type: ReportType
  /// Members of the row: those of `by`.
  let group: [JSONValue.Member]
  let isOthers: Bool
  /// By the held clock, in milliseconds.
  private(set) var end: Int64
  let seconds: Int
  /// Created times.
  private(set) var first: Int64, last: Int64
  private(set) var count = 0
  private(set) var fields: [String: Sketch] = [:]
  private var plain = Plain()
  var streams: GroupStreams {
    get { plain.streams }
    set { plain.streams = newValue }
  }
  /// Metric, kind and unit: windows of other bounds and tags may have the same streams.
  var subject: String { JSONValue.object(group.filter { !["bounds", "tags"].contains($0.key) }).text }
  /// Its values rest, and no stream that is alive would lose them.
  func isSpare(_ heldTime: Int64) -> Bool { count == 0 && !plain.streams.isAlive(heldTime) }
  /// That of the newest report.
  private(set) var quota: StoreQuota

  init(
    _ rule: ReportReduction, _ type: ReportType, _ group: [JSONValue.Member], isOthers: Bool, createdTime: Int64,
    heldTime: Int64, _ batch: ReportBatch
  ) {
    (self.type, self.group, self.isOthers, seconds) = (type, group, isOthers, rule.seconds)
    (userID, quota) = (batch.userID, batch.quota)
    (first, last, end) = (createdTime, createdTime, heldTime + Int64(rule.seconds) * 1000)
  }

  mutating func add(
    _ rule: ReportReduction, createdTime: Int64, quota: StoreQuota, _ value: (String) -> JSONValue?
  ) {
    (first, last, self.quota) = (min(first, createdTime), max(last, createdTime), quota)
    count += 1
    for (name, kind) in rule.fields {
      if kind == .sum { plain.sums.insert(name) }
      if let number = value(name)?.double { fields[name, default: Sketch()].add(number) }
    }
  }

  /// Adds numbers that an input counted together. Steps of a gauge are its values, and texts of what they add to it.
  mutating func add(
    part given: JSONValue, createdTime: Int64, quota: StoreQuota, _ place: GroupStreams.Place, heldTime: Int64
  ) {
    (first, last, self.quota) = (min(first, createdTime), max(last, createdTime), quota)
    count += given["count"]?.int ?? 0
    if isOthers { return }
    var part = given
    if let stream = given["stream"]?.string {
      guard let news = plain.streams.add(given, to: stream, place, heldTime: heldTime) else { return }
      part = news
    }
    let buckets = CumulativePart.buckets(part)
    plain.buckets = plain.buckets.count == buckets.count ? zip(plain.buckets, buckets).map { $0 &+ $1 } : buckets
    if let sketch = part[Self.partField].flatMap({ Sketch(json: $0) }) {
      if sketch.percentile(0) == nil { plain.sums.insert(Self.partField) }
      fields[Self.partField, default: Sketch()].merge(sketch)
    }
    for step in part["steps"]?.array ?? [] {
      plain.sums.insert(Self.partField)
      plain.gauge = step.double ?? (plain.gauge ?? 0) + (step.string.flatMap { Double($0) } ?? 0)
      fields[Self.partField, default: Sketch()].add(plain.gauge ?? 0)
    }
    plain.distinct.formUnion((part["distinct"]?.array ?? []).compactMap(\.int))
    if plain.distinct.count > Self.distinctMax {
      plain.distinct = Set(plain.distinct.sorted().prefix(Self.distinctMax))
    }
  }

  /// The next window of a gauge begins.
  mutating func begin(createdTime: Int64, heldTime: Int64) {
    (first, last, end) = (createdTime, createdTime, heldTime + Int64(seconds) * 1000)
  }

  /// When its row is due, or a gauge without a row is forgotten.
  var due: Int64 { count > 0 ? end : end + Self.gaugeTime }

  /// The window of a gauge, or of streams, stays behind its row, with their values.
  var rest: OpenWindow? {
    var rest = self
    (rest.count, rest.fields, rest.plain.buckets) = (0, [:], [])
    rest.plain.streams.end(end, silent: end - Self.gaugeTime)
    return count > 0 && (plain.gauge != nil || !rest.plain.streams.isEmpty) ? rest : nil
  }

  // MARK: JSON

  /// A meta's own members, without braces.
  var body: [UInt8] {
    var (window, scale) = (self, fields.values.map(\.scale).max() ?? 0)
    while window.text.count > Limits.metaBytesMax * 3 / 4, scale > -3 {
      scale -= 1
      for name in fields.keys { window.fields[name]!.coarsen(to: scale) }
    }
    return window.text
  }

  private var text: [UInt8] {
    var numbers: [JSONValue.Member] = [
      .init("second", .int(seconds)), .init("count", .int(count)), .init("first", .int(first)),
      .init("last", .int(last)), .init("fields", fieldsJSON),
    ]
    if isOthers { numbers.append(.init("others", true)) }
    if plain.streams.leftOut > 0 { numbers.append(.init("leftOut", .int(plain.streams.leftOut))) }
    if !plain.buckets.isEmpty { numbers.append(.init("buckets", .array(plain.buckets.map { .int($0) }))) }
    if let gauge = plain.gauge { numbers.append(.init("gauge", Sketch.number(gauge))) }
    let members = group.filter { $0.key != Self.userKey } + sender + [.init(ReportReduction.key, .object(numbers))]
    return Array(JSONValue.object(members).bytes.dropFirst().dropLast())
  }

  /// Of the common information: it is a part of what identifies a report (docs/meta.md). Empty if the user is not known.
  private var sender: [JSONValue.Member] {
    userID == .max ? [] : [.init(Self.userKey, .string(String(userID)))]
  }

  private var fieldsJSON: JSONValue {
    var fields = fields
    if let greatest = plain.distinct.max() {
      let isExact = plain.distinct.count < Self.distinctMax
      let share = Double(greatest) / Double(1 << 62)
      let number = isExact ? plain.distinct.count : Int(Double(Self.distinctMax - 1) / share)
      fields[Self.partField, default: Sketch()].add(Double(number))
    }
    return .object(fields.sorted { $0.key < $1.key }.map { .init($0.key, numbersJSON(of: $0.value, $0.key)) })
  }

  private func numbersJSON(of sketch: Sketch, _ name: String) -> JSONValue {
    plain.sums.contains(name) || !plain.distinct.isEmpty ? sketch.sums : sketch.json
  }

  var note: [UInt8] {
    let json: JSONValue = [
      "user": .int(userID), "type": .string(type.text), "group": .object(group), "others": .bool(isOthers),
      "end": .int(end), "second": .int(seconds), "first": .int(first), "last": .int(last), "count": .int(count),
      "fields": .object(fields.map { .init($0.key, numbersJSON(of: $0.value, $0.key)) }),
      "sums": .array(plain.sums.map { .string($0) }), "gauge": plain.gauge.map { Sketch.number($0) } ?? .null,
      "distinct": .array(plain.distinct.map { .int($0) }), "buckets": .array(plain.buckets.map { .int($0) }),
      "quota": [.int(quota.bytesMax), .int(quota.userBytesMax), .bool(quota.evictsOldest)],
    ]
    return JSONValue.object((json.object ?? []) + plain.streams.members).bytes
  }

  /// nil if it is not one that `note` wrote.
  init?(note: [UInt8]) {
    guard let json = try? JSONValue(parsing: note), let userID = json["user"]?.int.flatMap({ UInt32(exactly: $0) }),
      let type = json["type"]?.string.flatMap({ ReportType($0) }), let group = json["group"]?.object,
      let isOthers = json["others"]?.bool, let end = json["end"]?.int, let seconds = json["second"]?.int,
      let first = json["first"]?.int, let last = json["last"]?.int, let count = json["count"]?.int,
      let fields = json["fields"]?.object, let quota = json["quota"]?.array, quota.count == 3,
      let bytesMax = quota[0].int, let userBytesMax = quota[1].int, let evictsOldest = quota[2].bool
    else { return nil }
    (self.userID, self.type, self.group, self.isOthers) = (userID, type, group, isOthers)
    (self.end, self.seconds, self.first, self.last) = (Int64(end), seconds, Int64(first), Int64(last))
    self.count = count
    self.quota = StoreQuota(bytesMax: bytesMax, userBytesMax: userBytesMax, evictsOldest: evictsOldest)
    plain.sums = Set((json["sums"]?.array ?? []).compactMap(\.string))
    (plain.gauge, plain.distinct) = (json["gauge"]?.double, Set((json["distinct"]?.array ?? []).compactMap(\.int)))
    plain.buckets = CumulativePart.buckets(json)
    plain.streams = GroupStreams(note: json, end: Int64(end))
    for field in fields {
      guard let sketch = Sketch(json: field.value) else { return nil }
      self.fields[field.key] = sketch
    }
  }
}
