import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

/// Enrolls a device: checks its token, stores the device, and answers with the device's own key.
struct Enrollment {
  private static let requestBytesMax = 4096
  private static let infoBytesMax = 1024

  private let options: CollectorOptions
  private let devices: DeviceStore
  private let packets: any PacketStore
  private let time: any TimeSource
  private let log: Logger

  init(_ collector: Collector) {
    (options, time, log) = (collector.options, collector.time, collector.log)
    (devices, packets) = (collector.devices.store, collector.store)
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
    let (decision, tags) = try await decision(asked, request)
    switch decision {
    case .refuse(let reason): throw reason.refusal
    case .enroll(let keyID, let generation), .answerAgain(let keyID, let generation):
      if let tags { try await write(tags, of: asked.deviceID) }
      let isAgain = if case .answerAgain = decision { true } else { false }
      log.info(
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
      guard let token = try await devices.tokens().first(where: { $0.hash == hash }) else {
        return (.refuse(.unknownToken), nil)
      }
      asked.hasSent = try await packets.hasPackets(of: asked.deviceID)
      return (try await devices.enroll(asked, tokenHash: hash, now: time.unixMilliseconds), token.tags)
    } catch { throw fault(error) }
  }

  /// A device that gets no answer asks once more, and its tags are written then.
  private func write(_ tags: DeviceTags, of device: String) async throws(CollectorRefusal) {
    let change = RecordChange(id: DeviceTags.Source.enrollment.id, action: .put(tags.fields))
    let place = RecordPlace(namespace: .prism, table: .tags, device: device)
    do throws(RecordFailure) { _ = try await packets.recordStore?.change([change], of: place, if: .always) } catch {
      throw fault(error)
    }
  }

  private func fault(_ error: any Error) -> CollectorRefusal {
    log.fault("collector.enroll", "devices can't be enrolled", ["cause": "\(error)"])
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
