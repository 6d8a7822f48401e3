import PrismPacket
import Testing

@testable import PrismCollector

@Suite("Whether a device is enrolled")
struct EnrollmentDecisionTests {
  private static let now: Int64 = 1_700_000_000_000

  private static func token(devices: Int = 0, expiresIn: Int64 = 1) -> EnrollmentToken {
    var token = EnrollmentToken(
      hash: EnrollmentToken.hash(of: "t"), keyID: "main", devicesMax: 2, expireTime: now + expiresIn)
    token.devices = devices
    return token
  }

  private static func key(_ byte: UInt8) -> SealingPublicKey? { SealingPublicKey([UInt8](repeating: byte, count: 32)) }

  /// - Parameter key: nil: it was not enrolled; 1 is the key that asks.
  private static func device(_ key: UInt8?, token: String? = nil, revoked: Bool = false) -> EnrolledDevice {
    var device = EnrolledDevice(id: "d")
    (device.keyID, device.token) = (key.map { _ in "main" }, token ?? Self.token().name)
    device.publicKey = key.flatMap { Self.key($0)?.base64 }
    device.revokedTime = revoked ? now : nil
    return device
  }

  @Test(
    "a new device with a good token is enrolled; the answer is given again to the key pair that asked first, and to no other",
    arguments: [
      (nil, nil, .refuse(.unknownToken)), (token(), nil, .enroll(keyID: "main", generation: 0)),
      (token(devices: 1), nil, .enroll(keyID: "main", generation: 0)), (token(devices: 2), nil, .refuse(.usedUpToken)),
      (token(expiresIn: 0), nil, .refuse(.expiredToken)),
      (token(), device(1), .answerAgain(keyID: "main", generation: 0)),
      (token(), device(2), .refuse(.knownDevice)), (token(), device(1, token: "other"), .refuse(.knownDevice)),
      (token(devices: 2, expiresIn: 0), device(1), .answerAgain(keyID: "main", generation: 0)),
      (token(), device(nil), .enroll(keyID: "main", generation: 0)),
      (token(), device(nil, revoked: true), .refuse(.revokedDevice)),
      (token(), device(1, revoked: true), .refuse(.revokedDevice)), (nil, device(1), .refuse(.unknownToken)),
    ] as [(EnrollmentToken?, EnrolledDevice?, EnrollmentDecision)])
  func decided(token: EnrollmentToken?, device: EnrolledDevice?, decision: EnrollmentDecision) throws {
    let request = EnrollmentRequest(deviceID: "d", publicKey: try #require(Self.key(1)), info: nil)
    #expect(EnrollmentDecision(token: token, device: device, request, now: Self.now) == decision)
  }

  @Test(
    "an id that ever sent, or was forgotten, is enrolled by a token of its own only, which is for no other id",
    arguments: [
      (nil, true, 0, .refuse(.sentBefore)), (nil, false, 1, .refuse(.sentBefore)),
      ("d", true, 0, .enroll(keyID: "main", generation: 0)), ("d", true, 2, .enroll(keyID: "main", generation: 2)),
      ("e", false, 0, .refuse(.otherDevice)), ("e", true, 1, .refuse(.otherDevice)),
    ] as [(String?, Bool, Int, EnrollmentDecision)])
  func named(name: String?, hasSent: Bool, generation: Int, decision: EnrollmentDecision) throws {
    let token = EnrollmentToken(hash: "t", keyID: "main", devicesMax: 2, expireTime: Self.now + 1, device: name)
    var device = Self.device(nil)
    device.generation = generation
    let request = EnrollmentRequest(
      deviceID: "d", publicKey: try #require(Self.key(1)), info: nil, hasSent: hasSent)
    #expect(EnrollmentDecision(token: token, device: device, request, now: Self.now) == decision)
  }

  @Test("a device that was enrolled before key pairs were asked for is known, and no request gets its key")
  func withoutKeyPair() throws {
    var device = Self.device(1)
    device.publicKey = nil
    let request = EnrollmentRequest(deviceID: "d", publicKey: try #require(Self.key(1)), info: nil)
    let decision = EnrollmentDecision(token: Self.token(), device: device, request, now: Self.now)
    #expect(decision == .refuse(.knownDevice))
  }
}
