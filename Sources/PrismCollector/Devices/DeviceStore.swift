/// Remembers enrolled and revoked devices, and enrollment tokens. A write is at rest when its call returns.
package protocol DeviceStore: Sendable {
  func add(_ token: EnrollmentToken) async throws(DeviceStoreFailure)
  /// All tokens, those that expire first before the others.
  func tokens() async throws(DeviceStoreFailure) -> [EnrollmentToken]
  /// Lets no device enroll with the token any more. - Returns: whether there was one of that name.
  func removeToken(_ name: String) async throws(DeviceStoreFailure) -> Bool

  /// Decides by what is stored, and stores the device if it is enrolled, in one transaction.
  /// - Parameters:
  ///   - hash: of the token.
  ///   - now: milliseconds since 1970.
  func enroll(_ request: EnrollmentRequest, tokenHash hash: String, now: Int64) async throws(DeviceStoreFailure)
    -> EnrollmentDecision

  /// Devices in the order of their ids.
  func page(after id: String, limit: Int) async throws(DeviceStoreFailure) -> [EnrolledDevice]
  func device(_ id: String) async throws(DeviceStoreFailure) -> EnrolledDevice?
  /// - Parameter time: milliseconds since 1970; nil restores the device.
  func setRevoked(_ id: String, at time: Int64?) async throws(DeviceStoreFailure)
  /// The device may enroll again, by its name, and gets another key: the one that it had is good no more. A revoked one
  /// stays revoked. - Returns: whether it was enrolled.
  func forget(_ id: String) async throws(DeviceStoreFailure) -> Bool
  /// By id, of the devices that were revoked or forgotten.
  func standings() async throws(DeviceStoreFailure) -> [String: DeviceStanding]
}

/// The facts about a device that each of its packets is checked by.
package struct DeviceStanding: Sendable, Equatable {
  var isRevoked = false
  /// Of its key (`DeviceKey`).
  var generation = 0
}
