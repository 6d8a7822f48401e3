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

  private static func device(_ ago: Int64?, token: String? = nil, revoked: Bool = false) -> EnrolledDevice {
    var device = EnrolledDevice(id: "d")
    (device.enrolledTime, device.token) = (ago.map { now - $0 }, token ?? Self.token().name)
    device.revokedTime = revoked ? now : nil
    return device
  }

  private static let last = EnrollmentDecision.repeatMilliseconds

  @Test(
    "a new device with a good token is enrolled, and one whose answer was lost is answered again",
    arguments: [
      (nil, nil, .refuse(.unknownToken)), (token(), nil, .enroll(keyID: "main")),
      (token(devices: 1), nil, .enroll(keyID: "main")), (token(devices: 2), nil, .refuse(.usedUpToken)),
      (token(expiresIn: 0), nil, .refuse(.expiredToken)),
      (token(), device(0), .answerAgain(keyID: "main")), (token(), device(last), .answerAgain(keyID: "main")),
      (token(), device(last + 1), .refuse(.knownDevice)), (token(), device(-1), .refuse(.knownDevice)),
      (token(), device(0, token: "other"), .refuse(.knownDevice)),
      (token(devices: 2, expiresIn: 0), device(0), .answerAgain(keyID: "main")),
      (token(), device(nil), .enroll(keyID: "main")), (token(), device(nil, revoked: true), .refuse(.revokedDevice)),
      (token(), device(0, revoked: true), .refuse(.revokedDevice)), (nil, device(0), .refuse(.unknownToken)),
    ] as [(EnrollmentToken?, EnrolledDevice?, EnrollmentDecision)])
  func decided(token: EnrollmentToken?, device: EnrolledDevice?, decision: EnrollmentDecision) {
    #expect(EnrollmentDecision(token: token, device: device, now: Self.now) == decision)
  }
}
