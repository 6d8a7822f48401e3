import PrismBase
import PrismConfig
import PrismProtocol
import PrismSQL
import PrismSQLite

/// Keeps notices, and how far their rules have looked, in tables that all replicas share. A write is at rest when its call returns.
actor NoticeStore {
  /// Notices that are kept: of each receiver those that wait, then the newest ones.
  static let countMax = 10_000

  fileprivate enum Column: String, SQLiteColumn {
    case id, receiver, event, time, content, state, attempts, dueTime, result
  }
  private enum MarkColumn: String, SQLiteColumn { case name, value }

  private let executor = DispatchQueueExecutor(label: "prism.collector.notices")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession

  init(_ database: FleetDatabase) { session = FleetSession(database) }

  // MARK: Adding

  /// Within a transaction of the fleet's tables. A notice that is there already stays.
  static func add(_ notices: [Notice], _ statements: SQLStatements) throws {
    guard !notices.isEmpty else { return }
    try statements.insert(
      Column.self, into: "notices",
      rows: notices.map {
        [
          $0.id, $0.receiver, $0.event?.rawValue ?? "test", $0.time, $0.content, $0.state.rawValue, $0.attempts,
          $0.dueTime,
          $0.result,
        ]
      }, onConflict: "DO NOTHING")
    let order = "CASE state WHEN '\(Notice.State.waiting.rawValue)' THEN 0 ELSE 1 END, time DESC"
    try statements.trim("notices", to: countMax, key: "id", of: "receiver", by: order)
  }

  func add(_ notice: Notice) throws(StoreFailure) { try session.write { try Self.add([notice], $0) } }

  /// How far a rule has looked; nil: it never has.
  func mark(_ name: String) throws(StoreFailure) -> Int64? {
    try session.read { try $0.integer("SELECT value FROM notice_marks WHERE name = $1", [name]) }
  }

  /// Moves a mark and adds the notices of what is between, both or neither.
  /// - Returns: false: another replica moved it since it was read. Then nothing is added.
  func move(
    _ name: String, from old: Int64?, to new: Int64, adding notices: [Notice]
  ) throws(StoreFailure) -> Bool {
    try session.write { statements in
      let moved =
        if let old {
          try statements.run(
            "UPDATE notice_marks SET value = $1 WHERE name = $2 AND value = $3 RETURNING 1", [new, name, old])
        } else {
          try statements.run(
            "INSERT INTO notice_marks (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1", [name, new])
        }
      guard moved == 1 else { return false }
      try Self.add(notices, statements)
      return true
    }
  }

  // MARK: Time in which a collector ran

  /// The name begins as that of the silent devices' marks. A name of a receiver follows a slash.
  private static let (looked, outage) = ("silentDevice", "silentDevice outage ")
  /// A shorter one counts as time in which a collector ran, as a start does.
  private static let outageMin: Int64 = 600_000, outagesMax = 1000
  /// The last look of this process, on both clocks.
  private var last: (time: Int64, uptime: Duration)?

  /// The time before which a device is silent that sent nothing since. Time in which no collector ran does not count, nor that which a
  /// clock skipped. Each look notes that a collector runs.
  /// - Parameters:
  ///   - silence: of service, in milliseconds.
  ///   - now: milliseconds since 1970.
  func silentSince(_ silence: Int64, now: Int64, uptime: Duration) throws(StoreFailure) -> Int64 {
    let known = last
    let outages = try session.write { statements in
      let before = try statements.integer("SELECT value FROM notice_marks WHERE name = $1", [Self.looked])
      let ran = known.flatMap { $0.time == before ? Int64((uptime - $0.uptime) / .milliseconds(1)) : nil } ?? 0
      let set = """
        INSERT INTO notice_marks (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
        """
      if let before, now - before - ran >= Self.outageMin {
        try statements.run(set, [Self.outage + String(before + ran), now])
      }
      try statements.run(set, [Self.looked, now])
      // The clock was ahead, or there are more than count.
      try statements.run(
        """
        DELETE FROM notice_marks WHERE name LIKE '\(Self.outage)%' AND (value > $1 OR name IN (SELECT name FROM notice_marks
          WHERE name LIKE '\(Self.outage)%' ORDER BY value DESC LIMIT 1000 OFFSET \(Self.outagesMax)))
        """, [now + Self.outageMin])
      return try statements.rows(
        of: MarkColumn.self, "FROM notice_marks WHERE name LIKE '\(Self.outage)%' ORDER BY value DESC"
      ).map { (begin: Int64($0.text(.name).dropFirst(Self.outage.count)) ?? 0, end: $0.int64(.value)) }
    }
    last = (now, uptime)
    var (since, left) = (now, silence)
    for outage in outages where left > since - outage.end && outage.begin < since {
      left -= max(0, since - outage.end)
      since = outage.begin
    }
    return since - left
  }

  // MARK: Delivering

  /// Later than any attempt can be due: the clock went back since.
  private static let dueMax: Int64 = 2 * 3_600_000

  /// Those whose attempt is due, the oldest first.
  func due(_ receiver: String, now: Int64, limit: Int) throws(StoreFailure) -> [Notice] {
    try session.read {
      try $0.rows(
        of: Column.self,
        """
        FROM notices WHERE receiver = $1 AND state = 'waiting' AND (due_time <= $2 OR due_time > $3)
        ORDER BY due_time, id LIMIT \(limit)
        """, [receiver, now, now + Self.dueMax]
      ).map(Notice.init)
    }
  }

  /// Begins an attempt. Until `dueTime` no other replica begins one.
  /// - Returns: false: another one has begun it.
  func claim(_ notice: Notice, until dueTime: Int64) throws(StoreFailure) -> Bool {
    try session.write {
      try $0.run(
        """
        UPDATE notices SET due_time = $1, attempts = attempts + 1
        WHERE id = $2 AND state = 'waiting' AND attempts = $3 RETURNING 1
        """, [dueTime, notice.id, notice.attempts]) == 1
    }
  }

  /// Notes the end of an attempt, unless another one began since.
  func settle(_ notice: Notice) throws(StoreFailure) {
    _ = try session.write {
      try $0.run(
        """
        UPDATE notices SET state = $1, due_time = $2, result = $3
        WHERE id = $4 AND state = 'waiting' AND attempts = $5 RETURNING 1
        """, [notice.state.rawValue, notice.dueTime, notice.result, notice.id, notice.attempts])
    }
  }

  // MARK: Reading and changing

  /// The newest first. - Parameters:
  ///   - time: those behind the one of this time and `id`.
  ///   - state: nil: of all states.
  func page(
    before time: Int64, id: String, state: Notice.State?, limit: Int
  ) throws(StoreFailure) -> [Notice] {
    try session.read {
      try $0.rows(
        of: Column.self,
        """
        FROM notices WHERE (time < $1 OR time = $1 AND id > $2) AND ($3 = '' OR state = $3)
        ORDER BY time DESC, id LIMIT \(limit)
        """, [time, id, state?.rawValue ?? ""]
      ).map(Notice.init)
    }
  }

  func counts() throws(StoreFailure) -> [Notice.State: Int] {
    try session.read { statements in
      var counts: [Notice.State: Int] = [:]
      for state in Notice.State.allCases {
        counts[state] = Int(
          try statements.integer("SELECT count(*) FROM notices WHERE state = $1", [state.rawValue]) ?? 0)
      }
      return counts
    }
  }

  /// Sends a dead one of these receivers again. - Returns: false: there is no such notice.
  func send(_ id: String, among receivers: [String], now: Int64) throws(StoreFailure) -> Bool {
    try session.write {
      try $0.run(
        """
        UPDATE notices SET state = 'waiting', due_time = $1, attempts = 0
        WHERE id = $2 AND state IN ('dead', 'dropped') AND receiver IN (\(Self.places(receivers, from: 3))) RETURNING 1
        """, [now, id] + receivers) == 1
    }
  }

  /// Drops one that waits or is dead. - Returns: false: there is no such notice.
  func drop(_ id: String) throws(StoreFailure) -> Bool {
    try session.write {
      try $0.run(
        "UPDATE notices SET state = 'dropped' WHERE id = $1 AND state IN ('dead', 'waiting') RETURNING 1", [id]) == 1
    }
  }

  /// Those that wait for another receiver since `time` become dead letters: no collector has it in its configuration any more.
  /// - Returns: how many.
  func retire(besides receivers: [String], dueBefore time: Int64) throws(StoreFailure) -> Int {
    try session.write {
      try $0.run(
        """
        UPDATE notices SET state = 'dead', result = 'the receiver is not configured any more'
        WHERE state = 'waiting' AND due_time < $1 AND receiver NOT IN (\(Self.places(receivers, from: 2))) RETURNING 1
        """, [time] + receivers)
    }
  }

  private static func places(_ values: [String], from first: Int) -> String {
    values.isEmpty ? "''" : values.indices.map { "$\($0 + first)" }.joined(separator: ", ")
  }
}

extension Notice {
  fileprivate init(_ row: SQLRow<NoticeStore.Column>) {
    (id, receiver, event, time) = (
      row.text(.id), row.text(.receiver), Event(rawValue: row.text(.event)), row.int64(.time)
    )
    let value = (try? JSONValue(parsing: row.text(.content))) ?? .null  // written by `content`
    (title, count) = (value["title"]?.string ?? "", value["count"]?.int ?? 1)
    items = value["items"].flatMap { [Item](controlJSON: $0) } ?? []
    (state, attempts) = (State(rawValue: row.text(.state)) ?? .dead, row.int(.attempts))
    (dueTime, result) = (row.int64(.dueTime), row.string(.result))
  }
}
