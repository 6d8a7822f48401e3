import PrismProtocol
import PrismSQLite

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

/// Makes one row a window and group of the reports of types with `reduce` (docs/recorder.md, "Reduce"). The part that a report
/// adds is committed with its answer, and a window's row with the end of its note. So kills change no number.
struct Reductions: StoreOperations {
  /// Bytes of a group's key; longer ones are counted in `others`.
  private static let keyBytesMax = 1024

  let transaction: StoreTransaction
  private let namespace: Int
  private var changed: Set<String> = []

  init(_ transaction: StoreTransaction, _ namespace: Int) {
    (self.transaction, self.namespace) = (transaction, namespace)
  }

  /// Adds a report to its window. - Returns: whether it is the first of its group.
  mutating func add(_ row: ReportBatch.Row, _ batch: ReportBatch, _ rule: ReportReduction) -> Bool {
    let type = batch.types[row.type].type
    let own = Self.members(batch.arena[row.body])
    let context = row.isSelfContained ? nil : Self.members(batch.context.members[...])
    func value(_ key: String) -> JSONValue? { own?[key] ?? context?[key] }
    var group = rule.by.compactMap { key in value(key).map { JSONValue.Member(key, $0) } }
    func key(_ group: String) -> String { "\(OpenWindow.keyPrefix)\(batch.userID) \(type.text) \(group)" }
    var name = key(JSONValue.object(group).text)
    let open = state.counts.windows[namespace] ?? [:]
    let isOthers = open[name] == nil && open.count >= ReportReduction.groupsMax || name.utf8.count > Self.keyBytesMax
    if isOthers { (name, group) = (key("others"), []) }
    let isFirst = open[name] == nil
    var window =
      open[name]
      ?? OpenWindow(
        rule, type, group, isOthers: isOthers, createdTime: row.createdTime, heldTime: transaction.heldTime, batch)
    window.add(rule, createdTime: row.createdTime, quota: batch.quota, value)
    state.counts.windows[namespace, default: [:]][name] = window
    changed.insert(name)
    return isFirst
  }

  private static func members(_ bytes: ArraySlice<UInt8>) -> JSONValue? {
    try? JSONValue(parsing: [UInt8(ascii: "{")] + bytes + [UInt8(ascii: "}")], allowsDuplicateKeys: true)
  }

  /// Writes the windows down that reports were added to.
  func write() throws(SQLiteError) {
    for name in changed {
      guard let window = state.counts.windows[namespace]?[name] else { continue }
      try write(window.note, name)
    }
  }

  private func write(_ note: [UInt8], _ name: String) throws(SQLiteError) {
    try transaction.statement(.names(.writeNote)).run(
      inserting: NoteRecord(namespace: namespace, key: name, value: note))
  }

  /// Makes rows of windows that are over. One that the quota has no room for stays open. - Returns: how many.
  func end() throws(SQLiteError) -> Int {
    let now = transaction.heldTime
    guard let open = state.counts.windows[namespace], open.contains(where: { $0.value.end <= now }),
      let place = state.names.namespaces[namespace]
    else { return 0 }
    var rows = 0
    for (name, window) in open.sorted(by: { $0.key < $1.key }) where window.end <= now {
      var batch = ReportBatch(
        namespace: place, userID: window.userID, context: CommonContext(members: []), quota: window.quota, app: nil)
      batch.types = [.init(type: window.type, priority: .rest, isRealtime: false)]
      batch.arena = window.body
      batch.rows = [
        .init(
          type: 0, createdTime: window.first, body: 0..<batch.arena.count,
          metaBytes: batch.arena.count + Self.frameBytes)
      ]
      guard try Appending.store(batch, in: transaction).exceptions.isEmpty else { continue }
      rows += 1
      state.counts.windows[namespace]![name] = nil
      try transaction.write(Note(namespace: place, key: name, value: nil))
    }
    return rows
  }

  /// Of the members that a row has beside its own.
  private static let frameBytes = 200
}
