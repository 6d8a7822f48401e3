import PrismBase
import PrismProtocol
import PrismSQL
import PrismSQLite

/// Keeps jobs and the progress of their devices, in tables that all replicas share. A write is at rest when its call returns.
actor JobStore {
  /// Jobs of a namespace. A new one takes the place of one that ended, the oldest first, and of no other.
  static let countMax = 500

  enum Addition { case added, isThere, isFull }

  private enum Column: String, SQLiteColumn {
    case id, namespace, who, expression, change, madeTime, expireTime, perMinute, failuresMax, state, dueTime
  }
  private enum DeviceColumn: String, SQLiteColumn { case job, device, progress, result, signature, changedTime }
  private enum CountColumn: String, SQLiteColumn { case job, progress, count }

  private let executor = DispatchQueueExecutor(label: "prism.collector.jobs")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession

  private var expiries = ExpiryWatch()

  init(_ database: FleetDatabase) { session = FleetSession(database) }

  func isOver(_ job: Job, now: Int64, uptime: Duration) -> Bool {
    expiries.isOver(job.id, at: job.expireTime, now: now, uptime: uptime)
  }

  /// - Returns: `isThere`: a job has this id. `isFull`: as many of its namespace go on.
  func add(_ job: Job, _ devices: [Job.Device]) throws(StoreFailure) -> Addition {
    try session.write { statements in
      guard try statements.first(of: Column.self, "FROM jobs WHERE id = $1", [job.id]) == nil else { return .isThere }
      let goOn = "FROM jobs WHERE namespace = $1 AND state IN (\(Job.State.thatGoOn))"
      let count = Int(try statements.integer("SELECT count(*) \(goOn)", [job.namespace.text]) ?? 0)
      guard count < Self.countMax else { return .isFull }
      let ended = """
        SELECT id FROM jobs WHERE namespace = $1 AND state NOT IN (\(Job.State.thatGoOn))
        ORDER BY made_time DESC, id LIMIT 1000 OFFSET \(Self.countMax - count - 1)
        """
      try statements.run("DELETE FROM job_devices WHERE job IN (\(ended))", [job.namespace.text])
      try statements.run("DELETE FROM jobs WHERE id IN (\(ended))", [job.namespace.text])
      try statements.insert(
        Column.self, into: "jobs",
        [
          job.id, job.namespace.text, job.who, job.expression, job.change.json.text, job.madeTime, job.expireTime,
          job.perMinute, job.failuresMax, job.state.rawValue, job.dueTime,
        ])
      try statements.insert(
        DeviceColumn.self, into: "job_devices",
        rows: devices.map { [job.id, $0.id, $0.progress.rawValue, $0.result, $0.signature, $0.changedTime] })
      return .added
    }
  }

  /// The newest first.
  func all() throws(StoreFailure) -> [Job] {
    try session.read {
      try $0.rows(of: Column.self, "FROM jobs ORDER BY made_time DESC, id").compactMap(Self.job)
    }
  }

  func job(_ id: String) throws(StoreFailure) -> Job? {
    try session.read { try $0.first(of: Column.self, "FROM jobs WHERE id = $1", [id]).flatMap(Self.job) }
  }

  /// nil: it was written by a later version.
  private static func job(_ row: SQLRow<Column>) -> Job? {
    guard let namespace = NamespaceName(row.text(.namespace)), let state = Job.State(rawValue: row.text(.state)),
      let value = try? JSONValue(parsing: row.text(.change)), let change = try? Job.Change(value, in: namespace)
    else { return nil }
    return Job(
      id: row.text(.id), namespace: namespace, who: row.text(.who), expression: row.text(.expression), change: change,
      madeTime: row.int64(.madeTime), expireTime: row.int64(.expireTime), perMinute: row.int(.perMinute),
      failuresMax: row.int(.failuresMax), state: state, dueTime: row.int64(.dueTime))
  }

  /// By the ids of jobs. - Parameter job: nil: of all.
  func counts(of job: String? = nil) throws(StoreFailure) -> [String: [Job.Progress: Int]] {
    try session.read { statements in
      try statements.rows(
        of: CountColumn.self,
        """
        FROM (SELECT job, progress, count(*) AS count FROM job_devices WHERE $1 = '' OR job = $1 GROUP BY job, progress) t
        """, [job ?? ""]
      ).reduce(into: [:]) { counts, row in
        guard let progress = Job.Progress(rawValue: row.text(.progress)) else { return }
        counts[row.text(.job), default: [:]][progress] = row.int(.count)
      }
    }
  }

  /// By their ids. - Parameter progress: nil: of each.
  func devices(
    of job: String, _ progress: Job.Progress?, after device: String, limit: Int
  ) throws(StoreFailure) -> [Job.Device] {
    try read(
      "WHERE job = $1 AND ($2 = '' OR progress = $2) AND device > $3 ORDER BY device LIMIT \(limit)",
      [job, progress?.rawValue ?? "", device])
  }

  /// Those of one progress that were looked at before the others.
  func next(of job: String, _ progress: Job.Progress, limit: Int) throws(StoreFailure) -> [Job.Device] {
    try read(
      "WHERE job = $1 AND progress = $2 ORDER BY changed_time, device LIMIT \(limit)", [job, progress.rawValue])
  }

  private func read(_ rest: String, _ values: [any SQLConvertible]) throws(StoreFailure) -> [Job.Device] {
    try session.read {
      try $0.rows(of: DeviceColumn.self, "FROM job_devices " + rest, values).map { row in
        Job.Device(
          id: row.text(.device), progress: Job.Progress(rawValue: row.text(.progress)) ?? .failed,
          result: row.string(.result), signature: row.string(.signature), changedTime: row.int64(.changedTime))
      }
    }
  }

  /// Takes the next step for itself: of several replicas one does. - Returns: false: another one did, or the job changed.
  func claim(_ job: Job, until dueTime: Int64) throws(StoreFailure) -> Bool {
    try session.write {
      try $0.run(
        "UPDATE jobs SET due_time = $1 WHERE id = $2 AND due_time = $3 AND state = $4 RETURNING 1",
        [dueTime, job.id, job.dueTime, job.state.rawValue]) == 1
    }
  }

  /// - Returns: false: it is in another state by now.
  func change(_ job: Job, to state: Job.State, failuresMax: Int? = nil) throws(StoreFailure) -> Bool {
    try session.write {
      try $0.run(
        "UPDATE jobs SET state = $1, failures_max = $2 WHERE id = $3 AND state = $4 RETURNING 1",
        [state.rawValue, failuresMax ?? job.failuresMax, job.id, job.state.rawValue]) == 1
    }
  }

  func note(_ devices: [Job.Device], of job: String) throws(StoreFailure) {
    guard !devices.isEmpty else { return }
    try session.write { statements in
      try statements.insert(
        DeviceColumn.self, into: "job_devices",
        rows: devices.map { [job, $0.id, $0.progress.rawValue, $0.result, $0.signature, $0.changedTime] },
        onConflict: """
          (job, device) DO UPDATE SET progress = excluded.progress, result = excluded.result,
            changed_time = excluded.changed_time
          """)
    }
  }
}
