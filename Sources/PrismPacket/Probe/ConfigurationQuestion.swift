import PrismBase
public import PrismProtocol

/// The question to the server of remote configuration, and the device's state with it (docs/remote-configuration.md, "Writing a
/// server").
public struct ConfigurationQuestion: Sendable, Equatable {
  /// The part of a fault that the server gets; status and log have the whole.
  public static let reasonBytesMax = 500

  /// The device that asks.
  public var deviceID: String
  /// What changed since? nil: everything.
  public var updateTime: Int64?
  /// Of what is in force.
  public var version: Int64?
  /// The number of the last answer that was taken.
  public var lastApplied: Int64?
  /// The number of what was refused or taken back, or `unreadable`; nil: nothing was.
  public var lastFailed: String?
  /// Why.
  public var reason: String?

  public init(deviceID: String) { self.deviceID = deviceID }

  /// The parameters of the query, in their order.
  public var parameters: [(name: String, value: String)] {
    let parameters: [(name: String, value: String?)] = [
      ("deviceId", deviceID), ("updateTime", updateTime.map { String($0) }), ("version", version.map { String($0) }),
      ("lastApplied", lastApplied.map { String($0) }), ("lastFailed", lastFailed), ("reason", reason),
    ]
    return parameters.compactMap { name, value in value.map { (name, $0) } }
  }

  /// - Parameter base: the server's address.
  public func url(_ base: String) -> String {
    base + "?" + parameters.map { "\($0.name)=\($0.value.percentEncoded)" }.joined(separator: "&")
  }

  /// The headers that prove to a collector that a holder of the device's key says this: a token alone proves no device.
  /// - Throws: `internal` if OpenSSL has no memory.
  public func proof(cipher: Cipher, keyID: String, key: Secret) throws(PacketError) -> [(name: String, value: String)] {
    [("Prism-Cipher", cipher.rawValue), ("Prism-Key-Id", keyID), ("Prism-Mac", try code(key))]
  }

  /// Whether a `Prism-Mac` proves it.
  public func isProven(by code: String?, key: Secret) throws(PacketError) -> Bool {
    ProbeCode.areEqual(code, try self.code(key))
  }

  /// The key is derived for this purpose alone.
  private func code(_ key: Secret) throws(PacketError) -> String {
    let own = try Hashing.hkdfSHA256(key: key, info: "prism2 configuration question")
    return Hex.encode(
      try Hashing.hmacSHA256(key: own, Array(parameters.map { "\($0.name)=\($0.value)\n" }.joined().utf8)))
  }
}
