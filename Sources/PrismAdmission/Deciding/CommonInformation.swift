import PrismBase
public import PrismProtocol

/// The common information of one connection: which key comes from where, and who wins (docs/ingest-protocol.md).
///
/// A key that a greeting gives wins over a configured one, and that over a fact of the process or the host. The facts that
/// the kernel gives about the peer win over all of them.
public enum CommonInformation {
  /// The protocol's version, `APP_MONITOR_VERSION`.
  public static let monitorVersion = "1"

  /// Keys that a greeting may set, beside those that are configured under `common`.
  public static let appKeys: Set<String> = [
    "APP_NAME", "APP_VERSION", "APP_PACKAGE_NAME", "APP_MODE", "APP_UID", "APP_MC", "APP_SESSION_ID", "CANDLE_TASK_ID",
  ]
  static let hostKeys: Set<String> = [
    "SYS_SYSTEM_MODEL", "SYS_DEVICE_ID", "SYS_BRAND", "SYS_PHONE_MODEL", "SYS_SYSTEM_VERSION", "APP_PLATFORM",
  ]
  /// Never taken from a client, not even from a crash's meta.
  static let kernelKeys = Set(["SYS_PEER_UID", "SYS_PEER_PID", "SYS_PEER_EXE", "SYS_PEER_UNIT"]).union(
    ClockMembers.keys)
  /// A row's own (`MetaSplicing`), the daemon's in every case; a crash may bring its own `CREATE_TIME`.
  static let rowKeys: Set<String> = ["MONITOR_TYPE", "REPORT_ID", "IS_BIZ", createTimeKey]
  static let createTimeKey = "CREATE_TIME"
  static let monitorVersionKey = "APP_MONITOR_VERSION"
  /// Of a report whose payload was too large and was left out: its bytes.
  static let payloadLeftOutKey = "PAYLOAD_LEFT_OUT"

  /// Every key that a meta may collide with.
  static func reservedKeys(configured: [String: String]) -> Set<String> {
    appKeys.union(hostKeys).union(kernelKeys).union(rowKeys).union([monitorVersionKey]).union(configured.keys)
  }

  /// - Parameter greeted: what the connection's greeting gave, checked.
  /// - Parameter sessionID: of the connection, if the client gave no id.
  static func members(
    host: HostFacts, peer: ReportingPeer, configured: [String: String], greeted: [String: String], sessionID: String
  ) -> [CommonMember] {
    var values = [
      "SYS_SYSTEM_MODEL": "linux", "APP_PLATFORM": "linux", "SYS_DEVICE_ID": host.deviceID,
      "SYS_SYSTEM_VERSION": host.systemVersion, "APP_SESSION_ID": sessionID, monitorVersionKey: monitorVersion,
    ]
    values["SYS_BRAND"] = host.brand
    values["SYS_PHONE_MODEL"] = host.model
    values["APP_NAME"] = peer.processName
    values["APP_PACKAGE_NAME"] = peer.executable
    values.merge(configured) { $1 }
    values.merge(greeted) { $1 }
    values["SYS_PEER_UID"] = peer.userID.map { String($0) }
    values["SYS_PEER_PID"] = peer.processID > 0 ? String(peer.processID) : nil
    values["SYS_PEER_EXE"] = peer.executable
    values["SYS_PEER_UNIT"] = peer.unit
    if let bootID = host.bootID, let clock = host.clock {
      values[ClockMembers.bootIDKey] = bootID
      values[ClockMembers.bootTimeKey] = String(clock.bootTime)
    }
    for key in rowKeys { values[key] = nil }
    return values.sorted { $0.key < $1.key }.map { CommonMember($0.key, .string($0.value)) }
  }

  /// JSON members without braces, as `CommonContext` holds them.
  static func text(_ members: some Sequence<CommonMember>) -> [UInt8] {
    var result: [UInt8] = []
    for member in members {
      if !result.isEmpty { result.append(UInt8(ascii: ",")) }
      JSONValue.append(quoted: member.key, to: &result)
      result.append(UInt8(ascii: ":"))
      result += member.json
    }
    return result
  }
}

/// One member of the common information.
public struct CommonMember: Sendable, Equatable {
  /// The member's key.
  public let key: String
  /// A JSON value on one line.
  public let json: [UInt8]

  /// - Parameter json: a JSON value on one line.
  public init(_ key: String, json: [UInt8]) { (self.key, self.json) = (key, json) }

  /// The member with `value` as JSON.
  public init(_ key: String, _ value: JSONValue) { self.init(key, json: value.bytes) }
}
