import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

// `POST /prism/enroll`: a device gets its key for an enrollment token (docs/collector.md, "Devices").
extension Collector {
  static let enrollPath = "/prism/enroll"
  private static let enrollBytesMax = 4096
  private static let infoBytesMax = 1024

  /// - Throws: 400 for a bad body, 401 without a good token, 403 and 409 for the device. 404 if no key is derived for devices,
  ///   503 if the device can't be stored.
  func enroll(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    do throws(CollectorRefusal) {
      let answer = try await enrolled(request)
      counts.countEnrollment("enrolled")
      return answer
    } catch {
      counts.countEnrollment("refused_\(error.status)")
      refusals.add(.init(refusal: error, from: request.peer.address, sender: nil))
      throw error
    }
  }

  private func enrolled(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard options.keyRules.values.contains(where: \.derivesForDevice) else {
      throw CollectorRefusal(404, "this collector enrolls no devices: no key of it has `derive: device`")
    }
    guard options.tls != nil || options.allowsPlainEnrollment || request.peer.isLocal else {
      throw CollectorRefusal(
        403, "a key goes over https only; where a balancer in front ends TLS, set enroll.allowPlain")
    }
    let asked = try EnrollmentRequest(request.body, bytesMax: Self.enrollBytesMax, infoBytesMax: Self.infoBytesMax)
    let decision = try await decision(asked, request)
    switch decision {
    case .refuse(let reason): throw reason.refusal
    case .enroll(let keyID), .answerAgain(let keyID):
      log.info(
        "a device was enrolled",
        ["device": asked.deviceID, "key": keyID, "again": decision == .enroll(keyID: keyID) ? "no" : "yes"])
      return try keyAnswer(asked.deviceID, keyID)
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

  private func keyAnswer(_ device: String, _ keyID: String) throws(CollectorRefusal) -> HTTPResponse {
    guard let master = options.keys[keyID], let rule = options.keyRules[keyID], rule.derivesForDevice,
      let key = try? DeviceKey.derived(master: master, keyID: keyID, deviceID: device, cipher: .aes256GCM)
    else { throw CollectorRefusal(503, "the key that the token is for is not in the collector's configuration") }
    let answer = EnrolledKey(
      deviceID: device, keyID: keyID, digits: Hex.encode(key.bytes), namespaces: rule.namespaces?.sorted())
    return HTTPResponse(
      status: 200, contentType: "application/json", headers: [("Cache-Control", "no-store")],
      text: answer.json.text + "\n")
  }
}

extension EnrollmentRequest {
  /// - Throws: 400 for a body that is no enrollment.
  init(_ body: [UInt8], bytesMax: Int, infoBytesMax: Int) throws(CollectorRefusal) {
    guard body.count <= bytesMax, let json = try? JSONValue(parsing: body), let members = json.object,
      members.allSatisfy({ ["deviceId", "info"].contains($0.key) })
    else {
      throw CollectorRefusal(
        400, "an enrollment is a JSON object of at most \(bytesMax) bytes with deviceId and, if wanted, info")
    }
    guard let device = json["deviceId"]?.string, DeviceID.isValid(device) else {
      throw CollectorRefusal(400, "deviceId must be 1 to 128 visible ASCII characters")
    }
    let info = json["info"].map { OutputText.line($0.string ?? $0.text) }
    guard info?.utf8.count ?? 0 <= infoBytesMax else {
      throw CollectorRefusal(400, "info must have at most \(infoBytesMax) bytes")
    }
    self.init(deviceID: device, info: info)
  }
}
