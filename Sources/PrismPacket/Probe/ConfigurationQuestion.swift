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

}

/// A question without a body that a device's key proves: by `Prism-Mac`, the HMAC-SHA-256 of its parameters.
package protocol ProvenQuestion {
  /// Of the key: it is derived for this purpose alone.
  static var purpose: String { get }
  var deviceID: String { get }
  /// Those that the code is over: a line each, `name=value`.
  var parameters: [(name: String, value: String)] { get }
}

extension ProvenQuestion {
  /// The value of `Prism-Mac`. - Throws: `internal` if OpenSSL has no memory.
  package func code(_ key: Secret) throws(PacketError) -> String {
    let own = try Hashing.hkdfSHA256(key: key, info: "prism2 \(Self.purpose) question")
    return Hex.encode(
      try Hashing.hmacSHA256(key: own, Array(parameters.map { "\($0.name)=\($0.value)\n" }.joined().utf8)))
  }

  /// Whether a `Prism-Mac` proves it.
  package func isProven(by code: String?, key: Secret) throws(PacketError) -> Bool {
    ProbeCode.areEqual(code, try self.code(key))
  }
}

extension ConfigurationQuestion: ProvenQuestion { package static var purpose: String { "configuration" } }

/// The codes by which both ends of a question in JSON prove that they have the same key: HMAC-SHA-256. The keys are derived for
/// one purpose alone, so that no probe can be taken for a packet.
public struct ProbeCode: Sendable {
  private let questionKey: Secret, answerKey: Secret

  /// The purpose of a key.
  public enum Purpose: String, Sendable { case probe, intent }

  /// - Throws: `internal` if OpenSSL has no memory.
  public init(key: Secret, for purpose: Purpose = .probe) throws(PacketError) {
    questionKey = try Hashing.hkdfSHA256(key: key, info: "prism2 \(purpose.rawValue)")
    answerKey = try Hashing.hkdfSHA256(key: key, info: "prism2 \(purpose.rawValue) answer")
  }

  /// The header `Prism-Mac` of a question.
  public func ofQuestion(_ body: [UInt8]) throws(PacketError) -> String {
    Hex.encode(try Hashing.hmacSHA256(key: questionKey, body))
  }

  /// The header `Prism-Mac` of an answer: of the question's nonce, a line feed, and the body.
  public func ofAnswer(_ body: [UInt8], nonce: String) throws(PacketError) -> String {
    Hex.encode(try Hashing.hmacSHA256(key: answerKey, Array((nonce + "\n").utf8) + body))
  }

  /// Takes as long for any two codes of one length. - Returns: false if `code` is nil.
  public static func areEqual(_ code: String?, _ expected: String) -> Bool {
    Hashing.areEqual(Array((code ?? "").utf8), Array(expected.utf8))
  }

  /// 32 unpredictable hexadecimal digits.
  public static func newNonce() throws(PacketError) -> String { Hex.encode(try Hashing.randomBytes(16)) }
}
