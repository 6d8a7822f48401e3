import PrismPacket
import PrismProtocol

/// Whether a device gets its key.
package enum EnrollmentDecision: Sendable, Equatable {
  case enroll(keyID: String, generation: Int)
  /// It has the key, and asks once more because the answer was lost.
  case answerAgain(keyID: String, generation: Int)
  case refuse(Reason)

  /// The reason why it gets no key.
  package enum Reason: String, Sendable, CaseIterable {
    case unknownToken, expiredToken, usedUpToken, otherDevice, revokedDevice, knownDevice, sentBefore
  }

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

extension EnrollmentDecision.Reason {
  var refusal: CollectorRefusal {
    switch self {
    case .unknownToken: CollectorRefusal(401, code: .token, "the enrollment token is wrong")
    case .expiredToken: CollectorRefusal(401, code: .token, "the enrollment token has expired; ask for a new one")
    case .usedUpToken:
      CollectorRefusal(403, "the enrollment token has enrolled as many devices as it may; ask for a new one")
    case .revokedDevice:
      CollectorRefusal(403, "the device was revoked; `prism-collector device restore` takes that back")
    case .otherDevice: CollectorRefusal(403, "the enrollment token is for another device")
    case .sentBefore:
      CollectorRefusal(
        409,
        "this collector has packets of a device of this id; enroll it by its name: `prism-collector device token KEY-ID 1 DAYS --device ID`"
      )
    case .knownDevice:
      CollectorRefusal(
        409,
        "a device of this id is enrolled; if it lost its key, `prism-collector device forget` lets it enroll again, by its name"
      )
    }
  }
}
