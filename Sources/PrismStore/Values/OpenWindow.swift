import PrismProtocol

/// The reports of one group in a window that is open. It is a note, written in the transaction that answers the reports.
struct OpenWindow: Sendable, Equatable {
  static let keyPrefix = "reduce."

  let userID: UInt32
  let type: ReportType
  /// Members of the row: those of `by`.
  let group: [JSONValue.Member]
  let isOthers: Bool
  /// By the held clock, in milliseconds.
  let end: Int64
  let seconds: Int
  /// Created times.
  private(set) var first: Int64, last: Int64
  private(set) var count = 0
  private(set) var fields: [String: Sketch] = [:]
  /// Fields without percentiles.
  private var sums: Set<String> = []
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
      if kind == .sum { sums.insert(name) }
      if let number = value(name)?.double { fields[name, default: Sketch()].add(number) }
    }
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
      .init("last", .int(last)),
      .init("fields", .object(fields.sorted { $0.key < $1.key }.map { .init($0.key, json(of: $0.value, $0.key)) })),
    ]
    if isOthers { numbers.append(.init("others", true)) }
    return Array(JSONValue.object(group + [.init(ReportReduction.key, .object(numbers))]).bytes.dropFirst().dropLast())
  }

  private func json(of sketch: Sketch, _ name: String) -> JSONValue {
    sums.contains(name) ? sketch.sums : sketch.json
  }

  var note: [UInt8] {
    let json: JSONValue = [
      "user": .int(userID), "type": .string(type.text), "group": .object(group), "others": .bool(isOthers),
      "end": .int(end), "second": .int(seconds), "first": .int(first), "last": .int(last), "count": .int(count),
      "fields": .object(fields.map { .init($0.key, $0.value.json) }), "sums": .array(sums.map { .string($0) }),
      "quota": [.int(quota.bytesMax), .int(quota.userBytesMax), .bool(quota.evictsOldest)],
    ]
    return json.bytes
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
    sums = Set((json["sums"]?.array ?? []).compactMap(\.string))
    for field in fields {
      guard let sketch = Sketch(json: field.value) else { return nil }
      self.fields[field.key] = sketch
    }
  }
}
