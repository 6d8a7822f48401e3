import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol

/// Enrolls a device: checks its token, stores the device, and answers with the device's own key.
struct Enrollment {
  let collector: Collector

  private var options: CollectorOptions { collector.options }

  func answer(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard options.keyRules.values.contains(where: \.derivesForDevice) else {
      throw CollectorRefusal(404, "this collector enrolls no devices: no key of it has `derive: device`")
    }
    guard options.tls != nil || options.allowsPlainEnrollment || request.peer.isLocal else {
      throw CollectorRefusal(
        403, "a key goes over https only; where a balancer in front ends TLS, set enroll.allowPlain")
    }
    let asked = try EnrollmentRequest(request.body)
    let (decision, tags) = try await decision(asked, request)
    switch decision {
    case .refuse(let reason): throw reason
    case .enroll(let keyID, let generation), .answerAgain(let keyID, let generation):
      if let tags { try await write(tags, of: asked.deviceID) }
      let isAgain = if case .answerAgain = decision { true } else { false }
      collector.log.info(
        "a device was enrolled", ["device": asked.deviceID, "key": keyID, "again": isAgain ? "yes" : "no"])
      return try keyAnswer(asked, keyID, generation)
    }
  }

  private func decision(
    _ asked: EnrollmentRequest, _ request: HTTPRequest
  ) async throws(CollectorRefusal) -> (EnrollmentDecision, DeviceTags?) {
    let given = request.header("authorization") ?? ""
    guard given.hasPrefix("Bearer "), given.utf8.count <= 256 else {
      throw CollectorRefusal(401, code: .token, "Authorization: Bearer and an enrollment token are needed")
    }
    let hash = EnrollmentToken.hash(of: String(given.dropFirst("Bearer ".count)))
    var asked = asked
    do throws(StoreFailure) {
      // A request without a token causes no work of the packets' store.
      guard let token = try await collector.devices.store.tokens().first(where: { $0.hash == hash }) else {
        return (.refuse(.unknownToken), nil)
      }
      asked.hasSent = try await collector.store.hasPackets(of: asked.deviceID)
      let now = collector.time.unixMilliseconds
      return (try await collector.devices.store.enroll(asked, tokenHash: hash, now: now), token.tags)
    } catch { throw fault(error) }
  }

  /// A device that gets no answer asks once more, and its tags are written then.
  private func write(_ tags: DeviceTags, of device: String) async throws(CollectorRefusal) {
    let change = RecordChange(id: DeviceTags.Source.enrollment.id, action: .put(tags.fields))
    let place = RecordPlace(namespace: .prism, table: .tags, device: device)
    do throws(RecordFailure) {
      _ = try await collector.store.change([change], of: place, if: .always)
    } catch {
      throw fault(error)
    }
  }

  private func fault(_ error: any Error) -> CollectorRefusal {
    collector.log.fault("collector.enroll", "devices can't be enrolled", ["cause": "\(error)"])
    return CollectorRefusal(503, "the collector can't store the device now", retryAfterSeconds: 5)
  }

  private func keyAnswer(
    _ asked: EnrollmentRequest, _ keyID: String, _ generation: Int
  ) throws(CollectorRefusal) -> HTTPResponse {
    guard let master = options.keys[keyID], let rule = options.keyRules[keyID], rule.derivesForDevice,
      let key = try? DeviceKey.derived(
        master: master, keyID: keyID, deviceID: asked.deviceID, generation: generation, cipher: .aes256GCM),
      let sealed = try? EnrolledKey.seal(key, id: keyID, of: asked.deviceID, to: asked.publicKey)
    else { throw CollectorRefusal(503, "the key that the token is for is not in the collector's configuration") }
    let answer = EnrolledKey(
      deviceID: asked.deviceID, keyID: keyID, sealedKey: sealed, namespaces: rule.namespaces?.sorted())
    return HTTPResponse(
      status: 200, contentType: "application/json", headers: [("Cache-Control", "no-store")],
      text: answer.json.text + "\n")
  }
}

// `POST /prism/enroll`: a device gets its key for an enrollment token (docs/collector.md, "Devices").
extension Collector {
  static let enrollPath = "/prism/enroll"

  /// - Throws: 400 for a bad body, 401 without a good token, 403 and 409 for the device. 404 if no key is derived for devices,
  ///   503 if the device can't be stored.
  func enroll(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    do throws(CollectorRefusal) {
      let answer = try await Enrollment(collector: self).answer(request)
      counts.count(.enrollments, "enrolled")
      return answer
    } catch {
      counts.count(.enrollments, "refused_\(error.status)")
      refusals.add(error, from: request.peer.address)
      throw error
    }
  }
}

/// A device that asks for its key, and what it says of itself.
struct EnrollmentRequest: Sendable, Equatable {
  private static let (bytesMax, infoBytesMax) = (4096, 1024)

  let deviceID: String
  /// The device's own public key. The answer is sealed to it, and is given again to it only.
  let publicKey: SealingPublicKey
  let info: String?
  /// The collector has packets of a device of this id.
  var hasSent = false
}

extension EnrollmentRequest {
  /// - Throws: 400 for a body that is no enrollment.
  init(_ body: [UInt8]) throws(CollectorRefusal) {
    guard body.count <= Self.bytesMax, let json = try? JSONValue(parsing: body), let members = json.object,
      members.allSatisfy({ ["deviceId", "publicKey", "info"].contains($0.key) })
    else {
      throw CollectorRefusal(
        400,
        "an enrollment is a JSON object of at most \(Self.bytesMax) bytes with deviceId, publicKey and, if wanted, info"
      )
    }
    guard let device = json["deviceId"]?.string, DeviceID.isValid(device) else {
      throw CollectorRefusal(400, "deviceId must be 1 to 128 visible ASCII characters")
    }
    guard let publicKey = json["publicKey"]?.string.flatMap({ SealingPublicKey(base64: $0) }),
      // Nothing can be sealed to a key of small order.
      (try? EnrolledKey.seal(Secret([]), id: "", of: device, to: publicKey)) != nil
    else {
      throw CollectorRefusal(
        400, "publicKey must be an X25519 public key in base64, to which the answer is sealed; update prismctl")
    }
    let info = json["info"].map { OutputText.line($0.string ?? $0.text) }
    guard info?.utf8.count ?? 0 <= Self.infoBytesMax else {
      throw CollectorRefusal(400, "info must have at most \(Self.infoBytesMax) bytes")
    }
    self.init(deviceID: device, publicKey: publicKey, info: info)
  }
}

/// Whether a device gets its key.
enum EnrollmentDecision: Sendable, Equatable {
  case enroll(keyID: String, generation: Int)
  /// It has the key, and asks once more because the answer was lost.
  case answerAgain(keyID: String, generation: Int)
  case refuse(CollectorRefusal)

  /// - Parameters:
  ///   - token: nil: there is no such token.
  ///   - device: nil: it is not known.
  ///   - now: milliseconds since 1970.
  init(
    token: EnrollmentToken?, device: EnrolledDevice?, _ request: EnrollmentRequest, now: Int64
  ) {
    guard let token else {
      self = .refuse(.unknownToken)
      return
    }
    let generation = device?.generation ?? 0
    self =
      if token.device.map({ $0 != request.deviceID }) == true {
        .refuse(.otherDevice)
      } else if device?.revokedTime != nil {
        .refuse(.revokedDevice)
      } else if let device, let keyID = device.keyID {
        device.token == token.name && device.publicKey == request.publicKey.base64
          ? .answerAgain(keyID: keyID, generation: generation) : .refuse(.knownDevice)
      } else if token.device == nil, generation > 0 || request.hasSent {
        .refuse(.sentBefore)
      } else if now >= token.expireTime {
        .refuse(.expiredToken)
      } else if token.devices >= token.devicesMax {
        .refuse(.usedUpToken)
      } else {
        .enroll(keyID: token.keyID, generation: generation)
      }
  }
}

extension CollectorRefusal {
  static let unknownToken = CollectorRefusal(401, code: .token, "the enrollment token is wrong")
  static let expiredToken = CollectorRefusal(
    401, code: .token, "the enrollment token has expired; ask for a new one")
  static let usedUpToken = CollectorRefusal(
    403, "the enrollment token has enrolled as many devices as it may; ask for a new one")
  static let revokedDevice = CollectorRefusal(
    403, code: .revoked, "the device was revoked; `prism-collector device restore` takes that back")
  static let otherDevice = CollectorRefusal(403, "the enrollment token is for another device")
  static let sentBefore = CollectorRefusal(
    409,
    "this collector has packets of a device of this id; enroll it by its name: `prism-collector device token KEY-ID 1 DAYS --device ID`"
  )
  static let knownDevice = CollectorRefusal(
    409,
    "a device of this id is enrolled; if it lost its key, `prism-collector device forget` lets it enroll again, by its name"
  )
}
