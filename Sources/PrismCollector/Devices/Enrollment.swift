import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

/// Enrolls a device: checks its token, stores the device, and answers with the device's own key.
struct Enrollment {
  private static let requestBytesMax = 4096
  private static let infoBytesMax = 1024

  private let options: CollectorOptions
  private let devices: any DeviceStore
  private let time: any TimeSource
  private let log: Logger

  init(_ options: CollectorOptions, _ devices: any DeviceStore, time: any TimeSource, log: Logger) {
    (self.options, self.devices, self.time, self.log) = (options, devices, time, log)
  }

  func answer(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard options.keyRules.values.contains(where: \.derivesForDevice) else {
      throw CollectorRefusal(404, "this collector enrolls no devices: no key of it has `derive: device`")
    }
    guard options.tls != nil || options.allowsPlainEnrollment || request.peer.isLocal else {
      throw CollectorRefusal(
        403, "a key goes over https only; where a balancer in front ends TLS, set enroll.allowPlain")
    }
    let asked = try EnrollmentRequest(request.body, bytesMax: Self.requestBytesMax, infoBytesMax: Self.infoBytesMax)
    let decision = try await decision(asked, request)
    switch decision {
    case .refuse(let reason): throw reason.refusal
    case .enroll(let keyID), .answerAgain(let keyID):
      log.info(
        "a device was enrolled",
        ["device": asked.deviceID, "key": keyID, "again": decision == .enroll(keyID: keyID) ? "no" : "yes"])
      return try keyAnswer(asked, keyID)
    }
  }

  private func decision(
    _ asked: EnrollmentRequest, _ request: HTTPRequest
  ) async throws(CollectorRefusal) -> EnrollmentDecision {
    let given = request.header("authorization") ?? ""
    guard given.hasPrefix("Bearer "), given.utf8.count <= 256 else {
      throw CollectorRefusal(401, code: .token, "Authorization: Bearer and an enrollment token are needed")
    }
    let hash = EnrollmentToken.hash(of: String(given.dropFirst("Bearer ".count)))
    do throws(DeviceStoreFailure) {
      return try await devices.enroll(asked, tokenHash: hash, now: time.unixMilliseconds)
    } catch {
      log.fault("collector.enroll", "devices can't be enrolled", ["cause": error.description])
      throw CollectorRefusal(503, "the collector can't store the device now", retryAfterSeconds: 5)
    }
  }

  private func keyAnswer(_ asked: EnrollmentRequest, _ keyID: String) throws(CollectorRefusal) -> HTTPResponse {
    guard let master = options.keys[keyID], let rule = options.keyRules[keyID], rule.derivesForDevice,
      let key = try? DeviceKey.derived(
        master: master, keyID: keyID, deviceID: asked.deviceID, cipher: .aes256GCM),
      let sealed = try? EnrolledKey.seal(key, id: keyID, of: asked.deviceID, to: asked.publicKey)
    else { throw CollectorRefusal(503, "the key that the token is for is not in the collector's configuration") }
    let answer = EnrolledKey(
      deviceID: asked.deviceID, keyID: keyID, sealedKey: sealed, namespaces: rule.namespaces?.sorted())
    return HTTPResponse(
      status: 200, contentType: "application/json", headers: [("Cache-Control", "no-store")],
      text: answer.json.text + "\n")
  }
}
