import PrismBase
import PrismPacket
package import PrismProtocol
import PrismSQL
import PrismSQLite

/// Remembers enrolled and revoked devices, and enrollment tokens. A write is at rest when its call returns. Collectors and
/// commands use it at the same time.
package actor DeviceStore {
  fileprivate enum TokenColumn: String, SQLiteColumn { case hash, keyID, devicesMax, devices, expireTime, device, tags }

  fileprivate enum Column: String, SQLiteColumn {
    case device, keyID, enrolledTime, token, info, revokedTime, publicKey, generation
  }

  private let executor = DispatchQueueExecutor(label: "prism.collector.enrollment")
  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession

  package init(_ database: FleetDatabase) { session = FleetSession(database) }

  // MARK: Tokens

  /// Devices may enroll with it from now on.
  package func add(_ token: EnrollmentToken) throws(StoreFailure) {
    try session.write {
      try $0.insert(
        TokenColumn.self, into: "tokens",
        [
          token.hash, token.keyID, token.devicesMax, token.devices, token.expireTime, token.device,
          token.tags?.fields.text,
        ])
    }
  }

  /// All tokens, those that expire first before the others.
  package func tokens() throws(StoreFailure) -> [EnrollmentToken] {
    try session.read {
      try $0.rows(of: TokenColumn.self, "FROM tokens ORDER BY expire_time, hash").map(EnrollmentToken.init)
    }
  }

  /// Lets no device enroll with the token any more. - Returns: whether there was one of that name.
  package func removeToken(_ name: String) throws(StoreFailure) -> Bool {
    try session.write { try $0.run("DELETE FROM tokens WHERE substr(hash, 1, 8) = $1 RETURNING 1", [name]) > 0 }
  }

  /// Decides by what is stored, and stores the device if it is enrolled, in one transaction.
  /// - Parameters:
  ///   - hash: of the token.
  ///   - now: milliseconds since 1970.
  func enroll(
    _ request: EnrollmentRequest, tokenHash hash: String, now: Int64
  ) throws(StoreFailure) -> EnrollmentDecision {
    try session.write { statements in
      // A request without a valid token causes no write. The token's row holds other replicas until the end.
      let isKnown = try statements.run("UPDATE tokens SET devices = devices WHERE hash = $1 RETURNING 1", [hash]) > 0
      guard isKnown, let row = try statements.first(of: TokenColumn.self, "FROM tokens WHERE hash = $1", [hash])
      else { return .refuse(.unknownToken) }
      let token = EnrollmentToken(row)
      var device = try Self.find(request.deviceID, statements) ?? EnrolledDevice(id: request.deviceID)
      let decision = EnrollmentDecision(token: token, device: device, request, now: now)
      if case .enroll(let keyID, _) = decision {
        (device.keyID, device.enrolledTime, device.token, device.info) = (keyID, now, token.name, request.info)
        device.publicKey = request.publicKey.base64
        try Self.write(device, statements)
        try statements.run("UPDATE tokens SET devices = devices + 1 WHERE hash = $1", [hash])
      }
      return decision
    }
  }

  // MARK: Devices

  /// Devices in the order of their ids.
  package func page(after id: String, limit: Int) throws(StoreFailure) -> [EnrolledDevice] {
    try session.read {
      try $0.rows(of: Column.self, "FROM devices WHERE device > $1 ORDER BY device LIMIT $2", [id, limit])
        .map(EnrolledDevice.init)
    }
  }

  /// nil: it was neither enrolled nor revoked.
  package func device(_ id: String) throws(StoreFailure) -> EnrolledDevice? {
    try session.read { try Self.find(id, $0) }
  }

  /// - Parameter time: milliseconds since 1970; nil restores the device.
  package func setRevoked(_ id: String, at time: Int64?) throws(StoreFailure) {
    try session.write { statements in
      var device = try Self.find(id, statements) ?? EnrolledDevice(id: id)
      device.revokedTime = time
      try Self.write(device, statements)
    }
  }

  /// The device may enroll again, by its name, and gets another key: the one that it had is good no more. A revoked one
  /// stays revoked. - Returns: whether it was enrolled.
  package func forget(_ id: String) throws(StoreFailure) -> Bool {
    try session.write { statements in
      guard let device = try Self.find(id, statements), device.enrolledTime != nil else { return false }
      var forgotten = EnrolledDevice(id: id)
      (forgotten.revokedTime, forgotten.generation) = (device.revokedTime, device.generation + 1)
      try Self.write(forgotten, statements)
      return true
    }
  }

  /// By id, of the devices that were revoked or forgotten.
  func standings() throws(StoreFailure) -> [String: DeviceStanding] {
    try session.read {
      try $0.rows(of: Column.self, "FROM devices WHERE \(FleetSchema.notable)").reduce(into: [:]) { standings, row in
        standings[row.text(.device)] = DeviceStanding(
          isRevoked: row.integer(.revokedTime) != nil, generation: row.int(.generation))
      }
    }
  }

  private static func find(_ id: String, _ statements: SQLStatements) throws -> EnrolledDevice? {
    try statements.first(of: Column.self, "FROM devices WHERE device = $1", [id]).map(EnrolledDevice.init)
  }

  /// A device that is neither enrolled nor revoked, and never was forgotten, has no row.
  private static func write(_ device: EnrolledDevice, _ statements: SQLStatements) throws {
    guard device.enrolledTime != nil || device.revokedTime != nil || device.generation > 0 else {
      try statements.run("DELETE FROM devices WHERE device = $1", [device.id])
      return
    }
    try statements.insert(
      Column.self, into: "devices",
      [
        device.id, device.keyID, device.enrolledTime, device.token, device.info, device.revokedTime, device.publicKey,
        device.generation,
      ], onConflict: Column.replacing(.device))
  }
}

/// The facts about a device that each of its packets is checked by.
struct DeviceStanding: Sendable, Equatable {
  var isRevoked = false
  /// Of its key (`DeviceKey`).
  var generation = 0
}

extension EnrollmentToken {
  fileprivate init(_ row: SQLRow<DeviceStore.TokenColumn>) {
    self.init(
      hash: row.text(.hash), keyID: row.text(.keyID), devicesMax: row.int(.devicesMax),
      expireTime: row.int64(.expireTime), device: row.string(.device),
      tags: row.string(.tags).flatMap { DeviceTags(try? JSONValue(parsing: Array($0.utf8))) })
    devices = row.int(.devices)
  }
}

extension EnrolledDevice {
  fileprivate init(_ row: SQLRow<DeviceStore.Column>) {
    self.init(id: row.text(.device))
    (keyID, enrolledTime, token) = (row.string(.keyID), row.integer(.enrolledTime), row.string(.token))
    (info, revokedTime, publicKey) = (row.string(.info), row.integer(.revokedTime), row.string(.publicKey))
    generation = row.int(.generation)
  }
}

/// A device that was enrolled or revoked.
package struct EnrolledDevice: Sendable, Equatable {
  /// As in its packets.
  package let id: String
  /// The key that it was given; nil: it was not enrolled here.
  package var keyID: String?
  /// Milliseconds since 1970; nil: it was not enrolled here.
  package var enrolledTime: Int64?
  /// The public key that it enrolled with, in base64: it alone gets the answer again.
  package var publicKey: String?
  /// The name of the token that enrolled it.
  package var token: String?
  /// How often it was forgotten: its key is of this generation.
  package var generation = 0
  /// The device's own description.
  package var info: String?
  /// Milliseconds since 1970; nil: its packets are taken.
  package var revokedTime: Int64?

  /// One line of `prism-collector device list`.
  package var json: JSONValue {
    let times = [("enrolledTime", enrolledTime), ("revokedTime", revokedTime)]
    let texts = [("keyId", keyID), ("token", token), ("info", info)]
    var members = [JSONValue.Member("deviceId", .string(id))]
    members += times.compactMap { name, time in time.map { .init(name, .int(Int($0))) } }
    if generation > 0 { members.append(.init("generation", .int(generation))) }
    members += texts.compactMap { name, text in text.map { .init(name, .string($0)) } }
    return .object(members)
  }
}

/// A secret that lets devices enroll. The collector keeps its hash only.
package struct EnrollmentToken: Sendable, Equatable {
  /// For lists and logs: the first 8 digits of the hash.
  package let name: String
  /// SHA-256 of the token, in hexadecimal digits.
  let hash: String
  /// The master key that the devices' keys are made from.
  package let keyID: String
  /// Devices that it may enroll.
  package let devicesMax: Int
  /// Devices that it has enrolled.
  package var devices = 0
  /// Milliseconds since 1970.
  package let expireTime: Int64
  /// The only device that it is for; nil: any that sent nothing yet.
  package let device: String?
  /// The devices that it enrolls get these tags; nil: it changes no tags.
  package let tags: DeviceTags?

  init(
    hash: String, keyID: String, devicesMax: Int, expireTime: Int64, device: String? = nil, tags: DeviceTags? = nil
  ) {
    (name, self.hash, self.keyID) = (String(hash.prefix(8)), hash, keyID)
    (self.devicesMax, self.expireTime, self.device) = (devicesMax, expireTime, device)
    self.tags = tags
  }

  /// A new token.
  /// - Returns: the text that devices give, which is not kept.
  package static func new(
    keyID: String, devicesMax: Int, expireTime: Int64, device: String? = nil, tags: DeviceTags? = nil
  ) -> (text: String, token: EnrollmentToken) {
    let text = Hex.random(byteCount: 24)
    let token = EnrollmentToken(
      hash: hash(of: text), keyID: keyID, devicesMax: devicesMax, expireTime: expireTime, device: device,
      tags: tags)
    return (text, token)
  }

  static func hash(of text: String) -> String { (try? Checksum.sha256(Array(text.utf8))) ?? "" }

  /// One line of `prism-collector device tokens`.
  package var json: JSONValue {
    .object(
      [
        .init("token", .string(name)), .init("keyId", .string(keyID)), .init("devices", .int(devices)),
        .init("devicesMax", .int(devicesMax)), .init("expireTime", .int(Int(expireTime))),
      ] + (device.map { [.init("deviceId", .string($0))] } ?? []) + (tags.map { [.init("tags", $0.fields)] } ?? []))
  }
}
