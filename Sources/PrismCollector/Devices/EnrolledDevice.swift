package import PrismProtocol

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

  init(id: String) { self.id = id }

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
