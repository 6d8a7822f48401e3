import PrismBase
import PrismPacket

/// Devices and tokens in PostgreSQL, for all replicas.
actor PostgreSQLDeviceStore: DeviceStore {
  private static let deviceColumns =
    "device, key_id, (extract(epoch FROM enrolled) * 1000)::bigint, token, info, "
    + "(extract(epoch FROM revoked) * 1000)::bigint, public_key, generation"
  /// Columns that versions of the schema before do not have.
  static let publicKeys = "ALTER TABLE enrolled_devices ADD COLUMN IF NOT EXISTS public_key text;"
  static let generations = """
    ALTER TABLE enrolled_devices ADD COLUMN IF NOT EXISTS generation bigint NOT NULL DEFAULT 0;
    ALTER TABLE enrollment_tokens ADD COLUMN IF NOT EXISTS device text;
    DROP INDEX IF EXISTS enrolled_devices_revoked;
    CREATE INDEX IF NOT EXISTS enrolled_devices_notable ON enrolled_devices (device) WHERE \(notable);
    """
  /// The devices of `standings`, which every replica asks every 2 s: few of a fleet.
  private static let notable = "revoked IS NOT NULL OR generation > 0"

  private let executor = DispatchQueueExecutor(label: "prism.collector.enrollment")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private var session: PostgreSQLSession

  /// Connects with the first call.
  init(_ target: PostgreSQLTarget) { session = PostgreSQLSession(target) }

  // MARK: Tokens

  func add(_ token: EnrollmentToken) throws(DeviceStoreFailure) {
    try perform { (connection, by) throws(PostgreSQLError) in
      _ = try connection.query(
        "INSERT INTO enrollment_tokens VALUES ($1, $2, $3, $4, \(Self.time("$5")), $6)",
        [
          token.hash, token.keyID, String(token.devicesMax), String(token.devices), String(token.expireTime),
          token.device,
        ], by: by)
    }
  }

  func tokens() throws(DeviceStoreFailure) -> [EnrollmentToken] {
    try perform { (connection, by) throws(PostgreSQLError) in try Self.tokens(connection, nil, by) }
  }

  func removeToken(_ name: String) throws(DeviceStoreFailure) -> Bool {
    try perform { (connection, by) throws(PostgreSQLError) in
      try connection.query("DELETE FROM enrollment_tokens WHERE left(hash, 8) = $1 RETURNING hash", [name], by: by)
        .count > 0
    }
  }

  func enroll(
    _ request: EnrollmentRequest, tokenHash hash: String, now: Int64
  ) throws(DeviceStoreFailure) -> EnrollmentDecision {
    try perform { (connection, by) throws(PostgreSQLError) in
      // A request without a valid token causes no write.
      guard let token = try Self.tokens(connection, hash, by).first else { return .refuse(.unknownToken) }
      // Two replicas that are asked for one device at once decide one after the other.
      _ = try connection.query(
        "INSERT INTO enrolled_devices (device) VALUES ($1) ON CONFLICT DO NOTHING", [request.deviceID], by: by)
      let device = try Self.device(connection, request.deviceID, locked: true, by)
      let decision = EnrollmentDecision(token: token, device: device, request, now: now)
      if case .enroll(let keyID, _) = decision {
        _ = try connection.query(
          """
          UPDATE enrolled_devices SET key_id = $2, enrolled = \(Self.time("$3")), token = $4, info = $5,
            public_key = $6
          WHERE device = $1
          """, [request.deviceID, keyID, String(now), token.name, request.info, request.publicKey.base64], by: by)
        _ = try connection.query(
          "UPDATE enrollment_tokens SET devices = devices + 1 WHERE hash = $1", [hash], by: by)
      } else {
        try Self.dropUnused(connection, request.deviceID, by)
      }
      return decision
    }
  }

  /// - Parameter hash: nil: all of them.
  private static func tokens(
    _ connection: PostgreSQLConnection, _ hash: String?, _ by: Deadline
  ) throws(PostgreSQLError) -> [EnrollmentToken] {
    let rows = try connection.query(
      """
      SELECT hash, key_id, devices_max, devices, (extract(epoch FROM expires) * 1000)::bigint, device
      FROM enrollment_tokens
      WHERE $1::text IS NULL OR hash = $1 ORDER BY expires, hash \(hash == nil ? "" : "FOR UPDATE")
      """, [hash], by: by)
    return (0..<rows.count).map { row in
      var token = EnrollmentToken(
        hash: rows.text(row, 0), keyID: rows.text(row, 1), devicesMax: Int(rows.int(row, 2)),
        expireTime: rows.int(row, 4), device: rows.isNull(row, 5) ? nil : rows.text(row, 5))
      token.devices = Int(rows.int(row, 3))
      return token
    }
  }

  // MARK: Devices

  func page(after id: String, limit: Int) throws(DeviceStoreFailure) -> [EnrolledDevice] {
    try perform { (connection, by) throws(PostgreSQLError) in
      let rows = try connection.query(
        "SELECT \(Self.deviceColumns) FROM enrolled_devices WHERE device > $1 ORDER BY device LIMIT $2::bigint",
        [id, String(limit)], by: by)
      return (0..<rows.count).map { Self.device(rows, $0) }
    }
  }

  func device(_ id: String) throws(DeviceStoreFailure) -> EnrolledDevice? {
    try perform { (connection, by) throws(PostgreSQLError) in try Self.device(connection, id, locked: false, by) }
  }

  func setRevoked(_ id: String, at time: Int64?) throws(DeviceStoreFailure) {
    try perform { (connection, by) throws(PostgreSQLError) in
      _ = try connection.query(
        """
        INSERT INTO enrolled_devices (device, revoked) VALUES ($1, \(Self.time("$2")))
        ON CONFLICT (device) DO UPDATE SET revoked = excluded.revoked
        """, [id, time.map { String($0) }], by: by)
      try Self.dropUnused(connection, id, by)
    }
  }

  func forget(_ id: String) throws(DeviceStoreFailure) -> Bool {
    try perform { (connection, by) throws(PostgreSQLError) in
      let forgotten = try connection.query(
        """
        UPDATE enrolled_devices SET key_id = NULL, enrolled = NULL, token = NULL, info = NULL, public_key = NULL,
          generation = generation + 1
        WHERE device = $1 AND enrolled IS NOT NULL RETURNING device
        """, [id], by: by)
      try Self.dropUnused(connection, id, by)
      return forgotten.count > 0
    }
  }

  func standings() throws(DeviceStoreFailure) -> [String: DeviceStanding] {
    try perform { (connection, by) throws(PostgreSQLError) in
      let rows = try connection.query(
        "SELECT device, revoked IS NOT NULL, generation FROM enrolled_devices WHERE \(Self.notable)", by: by)
      return (0..<rows.count).reduce(into: [:]) { standings, row in
        standings[rows.text(row, 0)] = DeviceStanding(
          isRevoked: rows.bool(row, 1), generation: Int(rows.int(row, 2)))
      }
    }
  }

  private static func device(
    _ connection: PostgreSQLConnection, _ id: String, locked: Bool, _ by: Deadline
  ) throws(PostgreSQLError) -> EnrolledDevice? {
    let rows = try connection.query(
      "SELECT \(deviceColumns) FROM enrolled_devices WHERE device = $1 \(locked ? "FOR UPDATE" : "")", [id], by: by)
    return rows.count == 1 ? device(rows, 0) : nil
  }

  private static func device(_ rows: PostgreSQLResult, _ row: Int) -> EnrolledDevice {
    func text(_ column: Int) -> String? { rows.isNull(row, column) ? nil : rows.text(row, column) }
    func time(_ column: Int) -> Int64? { rows.isNull(row, column) ? nil : rows.int(row, column) }
    var device = EnrolledDevice(id: rows.text(row, 0))
    (device.keyID, device.enrolledTime, device.token) = (text(1), time(2), text(3))
    (device.info, device.revokedTime, device.publicKey) = (text(4), time(5), text(6))
    device.generation = Int(rows.int(row, 7))
    return device
  }

  /// Removes the row of a device that is neither enrolled nor revoked, and never was forgotten.
  private static func dropUnused(
    _ connection: PostgreSQLConnection, _ id: String, _ by: Deadline
  ) throws(PostgreSQLError) {
    _ = try connection.query(
      "DELETE FROM enrolled_devices WHERE device = $1 AND enrolled IS NULL AND revoked IS NULL AND generation = 0",
      [id], by: by)
  }

  /// SQL for a time that is given in milliseconds since 1970.
  private static func time(_ parameter: String) -> String { "to_timestamp(\(parameter)::float8 / 1000)" }

  private func perform<Result>(
    _ body: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(DeviceStoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) { return try session.perform(body) } catch {
      throw DeviceStoreFailure(error.description)
    }
  }
}
