import Dispatch
import PrismBase
import PrismPacket
import PrismSQLite

/// Devices and tokens in `enrollment.db`, beside the collector's database: they are few, and outlive its damage. The
/// collector and its commands open it at the same time.
actor SQLiteDeviceStore: DeviceStore {
  private static let schema = """
    CREATE TABLE IF NOT EXISTS tokens (
      hash TEXT PRIMARY KEY, key_id TEXT NOT NULL, devices_max INTEGER NOT NULL, devices INTEGER NOT NULL,
      expire_time INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS enrolled (
      device TEXT PRIMARY KEY, key_id TEXT, enrolled_time INTEGER, token TEXT, info TEXT,
      revoked_time INTEGER) WITHOUT ROWID;
    """

  /// Columns that files of earlier versions do not have.
  private static let laterColumns = [
    ("enrolled", "public_key", "TEXT"), ("enrolled", "generation", "INTEGER NOT NULL DEFAULT 0"),
    ("tokens", "device", "TEXT"),
  ]

  /// The devices of `standings`, which is asked every 2 s: few of a fleet.
  private static let notable = "revoked_time IS NOT NULL OR generation > 0"
  private static let index = """
    DROP INDEX IF EXISTS enrolled_revoked;
    CREATE INDEX IF NOT EXISTS enrolled_notable ON enrolled (device) WHERE \(notable);
    """

  private let executor = DispatchQueueExecutor(label: "prism.collector.enrollment")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let connection: SQLiteConnection

  /// - Parameter folder: the state folder; the file is made if it is missing.
  init(folder: String) throws(DeviceStoreFailure) {
    connection = try Self.failing { () throws(SQLiteError) in
      let connection = try SQLiteConnection(.init(path: folder + "/enrollment.db"))
      try connection.execute("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
      try connection.execute(Self.schema)
      for (table, column, type) in Self.laterColumns { try connection.addMissingColumn(column, type, to: table) }
      try connection.execute(Self.index)
      return connection
    }
  }

  // MARK: Tokens

  func add(_ token: EnrollmentToken) throws(DeviceStoreFailure) {
    try Self.failing { () throws(SQLiteError) in
      try connection.prepare(SQLiteTokenRow.insert(into: "tokens")).run(inserting: SQLiteTokenRow(token: token))
    }
  }

  func tokens() throws(DeviceStoreFailure) -> [EnrollmentToken] {
    try Self.failing { () throws(SQLiteError) in
      var result: [EnrollmentToken] = []
      try connection.prepare("SELECT \(SQLiteTokenRow.Column.list) FROM tokens ORDER BY expire_time, hash")
        .forEachRow(of: SQLiteTokenRow.Column.self) { result.append(SQLiteTokenRow.token($0)) }
      return result
    }
  }

  func removeToken(_ name: String) throws(DeviceStoreFailure) -> Bool {
    try Self.failing { () throws(SQLiteError) in
      let statement = try connection.prepare("DELETE FROM tokens WHERE substr(hash, 1, 8) = :name")
      statement.bind(":name", name)
      try statement.run()
      return connection.changes > 0
    }
  }

  func enroll(
    _ request: EnrollmentRequest, tokenHash hash: String, now: Int64
  ) throws(DeviceStoreFailure) -> EnrollmentDecision {
    try Self.failing { () throws(SQLiteError) in
      try connection.transaction { () throws(SQLiteError) in
        let token = try token(hash)
        var device = try find(request.deviceID) ?? EnrolledDevice(id: request.deviceID)
        let decision = EnrollmentDecision(token: token, device: device, request, now: now)
        if case .enroll(let keyID, _) = decision, let token {
          (device.keyID, device.enrolledTime, device.token, device.info) = (keyID, now, token.name, request.info)
          device.publicKey = request.publicKey.base64
          try write(device)
          let count = try connection.prepare("UPDATE tokens SET devices = devices + 1 WHERE hash = :hash")
          count.bind(":hash", hash)
          try count.run()
        }
        return decision
      }
    }
  }

  private func token(_ hash: String) throws(SQLiteError) -> EnrollmentToken? {
    let statement = try connection.prepare("SELECT \(SQLiteTokenRow.Column.list) FROM tokens WHERE hash = :hash")
    statement.bind(":hash", hash)
    return try statement.first(of: SQLiteTokenRow.Column.self) { SQLiteTokenRow.token($0) }
  }

  // MARK: Devices

  func page(after id: String, limit: Int) throws(DeviceStoreFailure) -> [EnrolledDevice] {
    try Self.failing { () throws(SQLiteError) in
      let statement = try connection.prepare(
        "SELECT \(SQLiteDeviceRow.Column.list) FROM enrolled WHERE device > :after ORDER BY device LIMIT :limit")
      statement.bind(":after", id)
      statement.bind(":limit", limit)
      var result: [EnrolledDevice] = []
      try statement.forEachRow(of: SQLiteDeviceRow.Column.self) { result.append(SQLiteDeviceRow.device($0)) }
      return result
    }
  }

  func device(_ id: String) throws(DeviceStoreFailure) -> EnrolledDevice? {
    try Self.failing { () throws(SQLiteError) in try find(id) }
  }

  func setRevoked(_ id: String, at time: Int64?) throws(DeviceStoreFailure) {
    try Self.failing { () throws(SQLiteError) in
      try connection.transaction { () throws(SQLiteError) in
        var device = try find(id) ?? EnrolledDevice(id: id)
        device.revokedTime = time
        try write(device)
      }
    }
  }

  func forget(_ id: String) throws(DeviceStoreFailure) -> Bool {
    try Self.failing { () throws(SQLiteError) in
      let statement = try connection.prepare(
        """
        UPDATE enrolled SET key_id = NULL, enrolled_time = NULL, token = NULL, info = NULL, public_key = NULL,
          generation = generation + 1
        WHERE device = :device AND enrolled_time IS NOT NULL
        """)
      statement.bind(":device", id)
      try statement.run()
      return connection.changes > 0
    }
  }

  func standings() throws(DeviceStoreFailure) -> [String: DeviceStanding] {
    try Self.failing { () throws(SQLiteError) in
      var result: [String: DeviceStanding] = [:]
      let statement = try connection.prepare(
        "SELECT \(SQLiteDeviceRow.Column.list) FROM enrolled WHERE \(Self.notable)")
      try statement.forEachRow(of: SQLiteDeviceRow.Column.self) { row in
        result[row.text(.device)] = DeviceStanding(
          isRevoked: !row.isNull(.revokedTime), generation: row.int(.generation))
      }
      return result
    }
  }

  private func find(_ id: String) throws(SQLiteError) -> EnrolledDevice? {
    let statement = try connection.prepare("SELECT \(SQLiteDeviceRow.Column.list) FROM enrolled WHERE device = :device")
    statement.bind(":device", id)
    return try statement.first(of: SQLiteDeviceRow.Column.self) { SQLiteDeviceRow.device($0) }
  }

  private func write(_ device: EnrolledDevice) throws(SQLiteError) {
    try connection.prepare(SQLiteDeviceRow.insert(into: "enrolled", "OR REPLACE")).run(
      inserting: SQLiteDeviceRow(device: device))
  }

  private static func failing<Result>(
    _ body: () throws(SQLiteError) -> Result
  ) throws(DeviceStoreFailure) -> Result {
    do throws(SQLiteError) { return try body() } catch {
      throw DeviceStoreFailure("enrollment.db: \(error.description)")
    }
  }
}
