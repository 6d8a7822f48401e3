import PrismProtocol
import PrismSQLite

/// The ring of a namespace: rows of types with `keep: ring` stay in it until newer ones need their place, or until they were
/// held for long. It is emptied in whole segments, the oldest first, so that it costs little (docs/recorder.md).
struct Ring: PlainOperations {
  /// Of its bound, in bytes and in hours, a segment takes one of this many shares.
  static let segmentsPerRing = 8

  let transaction: StoreTransaction

  // MARK: New rows

  /// Begins the first segment, or another one if the current one has its share. Called before rows are kept.
  func makeRoom(_ queue: QueueID, bytesMax: Int = .max) throws(SQLiteError) {
    guard let place = state[queue].segments.lastPlace(isRing: true) else { return try begin(queue) }
    let current = state[queue].segments[place]
    if current.bytes >= bytesMax / Self.segmentsPerRing {
      try begin(queue)
    } else if current.bytes == 0 {
      // It is as old as its first row, not as its place in the list.
      state[queue].segments.removeEmpty(at: place)
      try begin(queue)
    }
  }

  func begin(_ queue: QueueID) throws(SQLiteError) {
    if state[queue].segments.list.count >= RowSegments.countMax - 1 { try Segments(transaction).mergeSmallest(queue) }
    guard state[queue].segments.list.count < RowSegments.countMax || state[queue].segments.currentRing == nil else {
      return
    }
    try Segments(transaction).begin(queue, isRing: true)
  }

  /// Rows were kept. They are in the current segment. - Parameter types: them by their types; nil: that is not counted.
  /// - Parameter owners: their bytes by user.
  func count(
    _ rows: Int, _ owners: [RowOwner: Int], _ types: [Int64: RowCount]?, hasClientIDs: Bool, _ queue: QueueID
  ) {
    let bytes = owners.values.reduce(0, +)
    guard let place = state[queue].segments.lastPlace(isRing: true), rows > 0 || bytes != 0 else { return }
    if types != nil, state[queue].segments[place].kept?.rows == 0 { state[queue].segments[place].kept?.types = [:] }
    if let types {
      state[queue].segments.keep(types, at: place)
    } else {
      state[queue].segments[place].kept?.types = nil
    }
    state[queue].ledger.stored += rows
    state[queue].ledger[.kept] += rows
    state[queue].segments[place].bytes += bytes
    state[queue].segments.keep(rows, owners, hasClientIDs: hasClientIDs, at: place)
    state[queue].lastSequence = state.nextSequence - 1
    transaction.touch(queue)
  }

  // MARK: Single rows

  /// Kept rows are about to leave the ring one by one: removed, or found damaged. - Returns: them by their types.
  @discardableResult
  func forget(_ members: IDRuns, _ queue: QueueID, to account: Ledger.Account) throws(SQLiteError) -> [Int64: RowCount]
  {
    state[queue].ledger.move(members.count, from: .kept, to: account)
    return try recount(members, queue, isKept: false)
  }

  /// Rows that were let go are kept again. - Returns: them by their types.
  @discardableResult func takeBack(_ members: IDRuns, _ queue: QueueID) throws(SQLiteError) -> [Int64: RowCount] {
    try transaction.hold(members, queue)
    state[queue].ledger.move(members.count, from: .waiting, to: .kept)
    return try recount(members, queue, isKept: true)
  }

  @discardableResult
  func recount(_ members: IDRuns, _ queue: QueueID, isKept: Bool) throws(SQLiteError) -> [Int64: RowCount] {
    var all: [Int64: RowCount] = [:]
    for (place, run) in state[queue].segments.pieces(of: members) {
      let counts = try counts(of: IDRuns(run), queue)
      let (found, owners) = (counts.byType, counts.byOwner.mapValues { isKept ? $0 : -$0 })
      // Whether a client gave an id of them is not known any more.
      state[queue].segments.keep(isKept ? run.count : -run.count, owners, hasClientIDs: isKept, at: place)
      state[queue].segments.keep(isKept ? found : found.mapValues { -$0 }, at: place)
      all.merge(found, uniquingKeysWith: +)
    }
    transaction.touch(queue)
    return all
  }

  func types(of members: IDRuns, _ queue: QueueID) throws(SQLiteError) -> [Int64: RowCount] {
    try counts(of: members, queue).byType
  }

  private func counts(of members: IDRuns, _ queue: QueueID) throws(SQLiteError) -> [OwnedRows] {
    var counts: [OwnedRows] = []
    try transaction.forEachRun(of: members, queue, .typesOfRange) { (rows) throws(SQLiteError) in
      try read(rows, queue, into: &counts)
    }
    return counts
  }

  /// The kept rows of a segment: it costs some milliseconds.
  func counts(_ queue: QueueID, at place: Int) throws(SQLiteError) -> [OwnedRows] {
    let segment = state[queue].segments[place]
    let table = RowTable(queue, number: segment.number)
    var counts: [OwnedRows] = []
    for gap in IDRuns(union: [state[queue].leaving(at: place), segment.spent]).gaps where gap.after < gap.end - 1 {
      let rows = try transaction.statement(.rows(.typesOfRange, table)).bind([
        ":first": gap.after + 1, ":last": gap.end - 1,
      ])
      try read(rows, queue, into: &counts)
    }
    return counts
  }

  private func read(_ rows: SQLiteStatement, _ queue: QueueID, into counts: inout [OwnedRows]) throws(SQLiteError) {
    try rows.forEachRow(of: RowStatement.TypeColumn.self) { (row) throws(SQLiteError) in
      let context = row.int64(.context)
      counts.append(
        OwnedRows(
          type: row.int64(.type), context: context,
          owner: try transaction.owner(context, namespace: queue.namespace) ?? .unknown,
          rows: RowCount(rows: row.int(.rows), bytes: row.int(.size))))
    }
  }

  // MARK: Looking at kept rows, and letting them go

  /// Calls `body` with each kept meta of a known type below an id, on the disk or in memory, the newest first, until it returns false.
  /// - Parameter takesAsked: with those, too, for which the collector is asked.
  func walkKept(
    _ namespace: Int, before end: Int64, takesAsked: Bool = true,
    _ body: (StoredRow, SQLiteRow<StoredRow.Column>) throws(SQLiteError) -> Bool
  ) throws(SQLiteError) {
    var walks = state.queues(of: namespace).filter { $0.kind == .meta }
      .map { KeptWalk($0, before: end, takesAsked: takesAsked, transaction) }
    defer { for index in walks.indices { walks[index].reset() } }
    for index in walks.indices { try walks[index].step() }
    while let newest = walks.indices.max(by: { walks[$0].id < walks[$1].id }), let (stored, row) = walks[newest].row {
      guard try body(stored, row) else { return }
      try walks[newest].step()
    }
  }

  /// Of a row of metas with its payload.
  func keptBytes(of row: StoredRow, _ payloads: QueueID) throws(SQLiteError) -> Int {
    let payloads = try MemoryRing(transaction).home(of: row.id, payloads)
    guard state[payloads].ledger[.kept] > 0 else { return Int(row.size) }
    let member = IDRuns(row.id)
    return Int(row.size) + (try transaction.bytes(of: member, payloads))
  }

  /// The value of a member of a row's meta, its own or its context's.
  func value(of key: String, in row: StoredRow, _ queue: QueueID) throws(SQLiteError) -> JSONValue? {
    if let own = Enriching.value(key, in: Array(row.body)) { return own }
    guard !row.flags.contains(.selfContained), let rendering = try transaction.rendering(of: row, queue) else {
      return nil
    }
    return Enriching.value(key, in: rendering.context)
  }

  /// Lets kept rows of metas go, with their payloads. - Parameter rule: what they leave with as `TRIGGER`.
  /// - Parameter devices: not 0: the collector is asked before they leave.
  /// - Returns: how many rows of both kinds were kept until now, and leave.
  func letGo(_ members: IDRuns, _ namespace: Int, by rule: String, devices: Int = 0) throws(SQLiteError) -> Int {
    let (metas, payloads) = (
      QueueID(namespace: namespace, kind: .meta), QueueID(namespace: namespace, kind: .payload)
    )
    try MemoryRing(transaction).moveOut(members, namespace)
    // Those for which another trigger asks the collector leave without an answer.
    for queue in [metas, payloads] {
      var asked = IDRuns()
      for id in members.ids where state[queue].isAsked(id) { asked.append(id) }
      if !asked.isEmpty { try takeBack(asked, queue) }
    }
    var withPayload = IDRuns()
    if state[payloads].ledger[.kept] > 0 {
      for id in members.ids where !state[payloads].isLeaving(id) {
        let member = IDRuns(id)
        if try transaction.bytes(of: member, payloads) > 0 { withPayload.append(id) }
      }
    }
    for (queue, members) in [(metas, members), (payloads, withPayload)] where !members.isEmpty {
      let types = try forget(members, queue, to: .waiting)
      if queue == metas, devices == 0 {
        try note(types, rule.hasPrefix(Questions.rulePrefix) ? .asked : .triggered, namespace)
      }
      try transaction.letGo(members, queue, by: rule, devices: devices)
    }
    return devices == 0 ? members.count + withPayload.count : 0
  }

  // MARK: The hourly report `ringHealth` of what became of kept reports (docs/recorder.md)

  private static let hourMilliseconds: Int64 = 3_600_000

  private func quota(_ namespace: Int) -> StoreQuota? {
    state.names.namespaces[namespace].flatMap { transaction.memory.policies.all[$0]?.ringReportQuota }
  }

  func reports(_ namespace: Int) -> Bool { quota(namespace) != nil }

  /// Counts what became of kept reports, if the namespace reports it.
  func note(_ types: [Int64: RowCount], _ fate: RingHour.Fate, _ namespace: Int) throws(SQLiteError) {
    guard reports(namespace), types.contains(where: { $0.value.rows > 0 }) else { return }
    var hour = state.counts.rings[namespace] ?? RingHour(began: transaction.heldTime)
    for (type, count) in types { hour.add(count.rows, fate, state.names.types[type] ?? .other) }
    try write(hour, namespace)
  }

  /// Counts all kept reports of a type or pattern as refused.
  func noteRefused(_ wanted: ReportType, _ namespace: NamespaceName) throws(SQLiteError) {
    guard let metas = state.queue(namespace, .meta), reports(metas.namespace) else { return }
    for queue in state.queues(of: metas.namespace) where queue.kind == .meta {
      for (place, segment) in state[queue].segments.list.enumerated() where segment.kept?.rows ?? 0 > 0 {
        let types = try types(queue, at: place).filter {
          guard let type = state.names.types[$0.key] else { return false }
          return wanted == type || wanted.isPattern && wanted.matches(type)
        }
        try note(types, .refused, metas.namespace)
      }
    }
  }

  private func write(_ hour: RingHour, _ namespace: Int) throws(SQLiteError) {
    state.counts.rings[namespace] = hour
    try transaction.write(hour.note, RingHour.key, namespace)
  }

  /// The kept rows of a segment by their types, counted if that is not known.
  func types(_ queue: QueueID, at place: Int) throws(SQLiteError) -> [Int64: RowCount] {
    if let types = state[queue].segments[place].kept?.types { return types }
    let types = try counts(queue, at: place).byType
    state[queue].segments[place].kept?.types = types
    return types
  }

  /// Whether the namespace's hour is over, or has not begun.
  func isReportDue(_ namespace: Int) -> Bool {
    guard reports(namespace) else { return false }
    return state.counts.rings[namespace].map { transaction.heldTime - $0.began >= Self.hourMilliseconds }
      ?? state.queues(of: namespace).contains { state[$0].ledger[.kept] > 0 }
  }

  /// Stores the report of an hour that is over, in the transaction that begins the next one. It counts segments that are not
  /// counted, one in each call. - Returns: whether there is more to do at once.
  func report(_ namespace: Int) throws(SQLiteError) -> Bool {
    guard let quota = quota(namespace), let name = state.names.namespaces[namespace] else { return false }
    guard let hour = state.counts.rings[namespace] else {
      try write(RingHour(began: transaction.heldTime), namespace)
      return false
    }
    var kept: [ReportType: RowCount] = [:]
    for queue in state.queues(of: namespace) {
      for (place, segment) in state[queue].segments.list.enumerated() where segment.kept?.rows ?? 0 > 0 {
        let isCounted = segment.kept?.types != nil
        for (type, count) in try types(queue, at: place) {
          let rows = queue.kind == .meta ? count.rows : 0
          kept[state.names.types[type] ?? .other, default: RowCount()] =
            kept[state.names.types[type] ?? .other, default: RowCount()] + RowCount(rows: rows, bytes: count.bytes)
        }
        if !isCounted { return true }
      }
    }
    let now = transaction.heldTime
    if kept.contains(where: { $0.value.rows > 0 }) || !hour.types.isEmpty {
      let body = hour.body(kept.filter { $0.value.rows > 0 }, seconds: Int((now - hour.began) / 1000))
      let batch = ReportBatch(
        own: .ringHealth, body, createdTime: transaction.unixMilliseconds, in: name, userID: 0, quota: quota)
      // One that has no room comes with the next hour.
      guard try Appending.store(batch, in: transaction).exceptions.isEmpty else { return false }
      transaction.memory.policies.windowsEnded += 1
    }
    try write(RingHour(began: now), namespace)
    return false
  }
}

/// Rows of one type and one context.
struct OwnedRows {
  let type: Int64, context: Int64
  let owner: RowOwner
  let rows: RowCount
}

extension [OwnedRows] {
  var byType: [Int64: RowCount] { Dictionary(map { ($0.type, $0.rows) }, uniquingKeysWith: +) }
  /// Their bytes.
  var byOwner: [RowOwner: Int] { Dictionary(map { ($0.owner, $0.rows.bytes) }, uniquingKeysWith: +) }
}
