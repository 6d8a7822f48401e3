import PrismBase
public import PrismProtocol

/// The codes by which both ends of a probe prove that they have the same key: HMAC-SHA-256. The keys are derived for
/// this purpose alone, so that no probe can be taken for a packet.
public struct ProbeCode: Sendable {
  private let questionKey: Secret, answerKey: Secret

  /// - Throws: `internal` if OpenSSL has no memory.
  public init(key: Secret) throws(PacketError) {
    questionKey = try Hashing.hkdfSHA256(key: key, info: "prism2 probe")
    answerKey = try Hashing.hkdfSHA256(key: key, info: "prism2 probe answer")
  }

  /// The header `Prism-Mac` of a probe.
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
