import PrismProtocol
import PrismSQLite

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
      try transaction.write(window.note, name, namespace)
    }
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
      try transaction.write(nil, name, namespace)
    }
    return rows
  }

  /// Of the members that a row has beside its own.
  private static let frameBytes = 200
}
