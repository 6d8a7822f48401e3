import PrismPacket
import PrismProtocol

/// Whether a device gets its key.
package enum EnrollmentDecision: Sendable, Equatable {
  case enroll(keyID: String)
  /// It has the key, and asks once more because the answer was lost.
  case answerAgain(keyID: String)
  case refuse(Reason)

  /// The reason why it gets no key.
  package enum Reason: String, Sendable, CaseIterable {
    case unknownToken, expiredToken, usedUpToken, revokedDevice, knownDevice
  }

  /// - Parameters:
  ///   - token: nil: there is no such token.
  ///   - device: nil: it is not known.
  ///   - publicKey: of the request.
  ///   - now: milliseconds since 1970.
  init(token: EnrollmentToken?, device: EnrolledDevice?, publicKey: SealingPublicKey, now: Int64) {
    guard let token else {
      self = .refuse(.unknownToken)
      return
    }
    self =
      if device?.revokedTime != nil {
        .refuse(.revokedDevice)
      } else if let device, let keyID = device.keyID {
        device.token == token.name && device.publicKey == publicKey.base64
          ? .answerAgain(keyID: keyID) : .refuse(.knownDevice)
      } else if now >= token.expireTime {
        .refuse(.expiredToken)
      } else if token.devices >= token.devicesMax {
        .refuse(.usedUpToken)
      } else {
        .enroll(keyID: token.keyID)
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
    case .knownDevice:
      CollectorRefusal(
        409, "a device of this id is enrolled; if it lost its key, `prism-collector device forget` lets it enroll again"
      )
    }
  }
}
