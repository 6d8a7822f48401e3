import PrismBase
import PrismProtocol
import PrismSQLite

/// Makes one row a window and group of the reports of types with `reduce` (docs/recorder.md, "Reduce"). The part that a report
/// adds is committed with its answer, and a window's row with the end of its note. So kills change no number.
struct Reductions: StoreOperations {
  /// Bytes of a group's key; longer ones are counted in `others`. A metric of statsd with the longest name and tags that are
  /// taken has a shorter one.
  private static let keyBytesMax = 8192

  let transaction: StoreTransaction
  private let namespace: Int
  private var changed: Set<String> = []
  /// Windows that rested, and made room for others.
  private(set) var forgotten = 0
  /// Whether a window that rests was not looked for in vain.
  private var mayRest = true
  /// nil: no stream looked for a place yet. Once a batch those that are silent make room.
  private var places: StreamPlaces?
  private var hasForgottenSilent = false

  init(_ transaction: StoreTransaction, _ namespace: Int) {
    (self.transaction, self.namespace) = (transaction, namespace)
  }

  /// Adds a report to its window. - Returns: whether it is the first of its group.
  mutating func add(_ row: ReportBatch.Row, _ batch: ReportBatch, _ rule: ReportReduction) -> Bool {
    let type = batch.types[row.type].type
    let own = Self.members(batch.arena[row.body])
    let part = batch.context.reduces ? own?[ReportReduction.key] : nil
    let context = row.isSelfContained || part != nil ? nil : Self.members(batch.context.members[...])
    func value(_ key: String) -> JSONValue? { own?[key] ?? context?[key] }
    var group = rule.by.compactMap { key in value(key).map { JSONValue.Member(key, $0) } }
    if part != nil { group = Self.group(of: own, tags: rule.by) }
    func key(_ group: String) -> String { "\(OpenWindow.keyPrefix)\(batch.userID) \(type.text) \(group)" }
    var name = key(JSONValue.object(group).text)
    let isOthers = name.utf8.count > Self.keyBytesMax || window(name) == nil && !hasRoom(batch.userID)
    if isOthers { (name, group) = (key("others"), []) }
    var window =
      self.window(name)
      ?? OpenWindow(
        rule, type, group, isOthers: isOthers, createdTime: row.createdTime, heldTime: transaction.heldTime, batch)
    let isFirst = window.count == 0
    if isFirst { window.begin(createdTime: row.createdTime, heldTime: transaction.heldTime) }
    if let part {
      let place = self.place(of: part, in: &window, name)
      window.add(
        part: part, createdTime: row.createdTime, quota: batch.quota, place, heldTime: transaction.heldTime)
    } else {
      window.add(rule, createdTime: row.createdTime, quota: batch.quota, value)
    }
    state.counts.windows[namespace, default: [:]][name] = window
    changed.insert(name)
    return isFirst
  }

  private var windows: [String: OpenWindow] { state.counts.windows[namespace] ?? [:] }
  private func window(_ name: String) -> OpenWindow? { windows[name] }

  /// A window that rests makes room for a group. One look in vain is enough: no window begins to rest while reports are added.
  private mutating func hasRoom(_ userID: UInt32) -> Bool {
    let places = SharedPlaces(most: ReportReduction.groupsMax)
    if places.hasRoom(taken: windows.count, own: { windows.values.count { $0.userID == userID } }) { return true }
    guard mayRest, let name = resting(for: userID) else {
      mayRest = false
      return false
    }
    state.counts.windows[namespace]![name] = nil
    changed.insert(name)
    forgotten += 1
    return true
  }

  /// The window that rests for longest, of the user itself; without one, of the user who holds most. One who holds no more than an
  /// equal share loses nothing to others.
  private func resting(for userID: UInt32) -> String? {
    var held = [userID: 0]
    var resting: [UInt32: (name: String, due: Int64)] = [:]
    for (name, window) in windows {
      held[window.userID, default: 0] += 1
      if window.isSpare(transaction.heldTime), window.due < resting[window.userID]?.due ?? .max {
        resting[window.userID] = (name, window.due)
      }
    }
    if let own = resting[userID] { return own.name }
    let share = max(ReportReduction.groupsMax / held.count, held[userID]!)
    return resting.filter { held[$0.key]! > share }.max { held[$0.key]! < held[$1.key]! }?.value.name
  }

  /// The place of a point's stream in its group. A stream that is in another one, as its bounds changed, leaves that: it is not new.
  private mutating func place(
    of part: JSONValue, in window: inout OpenWindow, _ name: String
  ) -> GroupStreams.Place {
    guard let stream = part["stream"]?.string, !window.isOthers, window.streams.parts[stream] == nil else {
      return .held
    }
    let (taken, now) = (GroupStreams.places(of: part), transaction.heldTime)
    if places == nil { places = StreamPlaces(windows, of: window.userID) }
    if !places!.hasRoom(for: taken, in: window), !hasForgottenSilent {
      _ = window.streams.forgetSilent(now)
      forgetSilent(window.userID, but: name)
      state.counts.windows[namespace, default: [:]][name] = window
      places = StreamPlaces(windows, of: window.userID)
    }
    guard places!.hasRoom(for: taken, in: window) else { return .none }
    let before = places!.take(taken, for: stream, of: window, name)
    if let before {
      state.counts.windows[namespace]?[before]?.streams.forget(stream)
      changed.insert(before)
    }
    let isNew = before == nil && window.streams.isNew(part, now: transaction.unixMilliseconds, heldTime: now)
    return isNew ? .new : .held
  }

  private mutating func forgetSilent(_ userID: UInt32, but own: String) {
    hasForgottenSilent = true
    for (name, window) in windows where window.userID == userID && name != own {
      var streams = window.streams
      guard streams.forgetSilent(transaction.heldTime) else { continue }
      state.counts.windows[namespace]![name]!.streams = streams
      changed.insert(name)
    }
  }

  /// The members of reports that an input counted together. - Parameter tags: those that make a group; empty: all do.
  private static func group(of own: JSONValue?, tags: [String]) -> [JSONValue.Member] {
    (own?.object ?? []).filter { $0.key != ReportReduction.key }.map { member in
      guard !tags.isEmpty, let all = member.value.object else { return member }
      return .init(member.key, .object(all.filter { tags.contains($0.key) }))
    }
  }

  private static func members(_ bytes: ArraySlice<UInt8>) -> JSONValue? {
    try? JSONValue(parsing: [UInt8(ascii: "{")] + bytes + [UInt8(ascii: "}")], allowsDuplicateKeys: true)
  }

  /// Writes the windows down that reports were added to.
  func write() throws(SQLiteError) {
    for name in changed { try transaction.write(window(name)?.note, name, namespace) }
  }

  /// Makes rows of windows that are over, or of all. One that the quota has no room for stays open. - Returns: how many.
  func end(all: Bool = false) throws(SQLiteError) -> Int {
    let now = all ? .max : transaction.heldTime
    guard let open = state.counts.windows[namespace], open.contains(where: { $0.value.due <= now }),
      let place = state.names.namespaces[namespace]
    else { return 0 }
    var rows = 0
    for (name, window) in open.sorted(by: { $0.key < $1.key }) where window.due <= now {
      if all && window.count == 0 { continue }  // what rests has nothing to send
      if window.count > 0 {
        let batch = ReportBatch(
          own: window.type, window.body, createdTime: window.first, in: place, userID: window.userID,
          quota: window.quota)
        guard try Appending.store(batch, in: transaction).exceptions.isEmpty else { continue }
        rows += 1
      }
      state.counts.windows[namespace]![name] = window.rest
      try transaction.write(window.rest?.note, name, namespace)
    }
    return rows
  }

}

extension ReportBatch {
  /// Of the members that a row has beside its own.
  private static let frameBytes = 200

  /// A report of the store's own.
  init(
    own type: ReportType, _ body: [UInt8], createdTime: Int64, in namespace: NamespaceName, userID: UInt32,
    quota: StoreQuota
  ) {
    self.init(
      namespace: namespace, userID: userID, context: CommonContext(members: []), quota: quota, app: nil)
    (types, arena) = ([.init(type: type, priority: .rest, isRealtime: false)], body)
    rows = [.init(type: 0, createdTime: createdTime, body: body.indices, metaBytes: body.count + Self.frameBytes)]
  }
}
