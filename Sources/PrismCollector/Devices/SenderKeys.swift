import PrismPacket
import PrismProtocol

/// The keys of the senders, by id.
struct SenderKeys: Sendable {
  private let keys: [String: Secret]
  private let rules: [String: KeyRule]

  /// - Parameter rules: of the keys that are not for all devices and namespaces alike.
  init(_ keys: [String: Secret], rules: [String: KeyRule] = [:]) { (self.keys, self.rules) = (keys, rules) }

  /// - Throws: 401 for a key that this collector does not have, 403 for a namespace that is not the key's.
  func check(_ delivery: Delivery) throws(CollectorRefusal) {
    try check(keyID: delivery.keyID, delivery.context.namespace)
  }

  /// - Throws: as for a packet.
  func check(keyID: String, _ namespace: NamespaceName) throws(CollectorRefusal) {
    guard keys[keyID] != nil else {
      throw CollectorRefusal(401, code: .unknownKey, "this collector has no key of the id that Prism-Key-Id names")
    }
    guard rules[keyID]?.namespaces?.contains(namespace.text) != false else {
      throw CollectorRefusal(403, "the key that Prism-Key-Id names is not for this namespace")
    }
  }

  /// The key of the packet: of its device, where the key's file holds a master.
  func secret(for delivery: Delivery) throws(PacketError) -> Secret {
    try secret(keyID: delivery.keyID, deviceID: delivery.context.deviceID, delivery.cipher)
  }

  /// The key of a device's packets under this cipher.
  func secret(keyID: String, deviceID: String, _ cipher: Cipher) throws(PacketError) -> Secret {
    let secret = keys[keyID] ?? Secret([])
    guard derives(keyID) else { return secret }
    return try DeviceKey.derived(master: secret, keyID: keyID, deviceID: deviceID, cipher: cipher)
  }

  /// Whether each device has a key of its own.
  func derives(_ keyID: String) -> Bool { rules[keyID]?.derivesForDevice == true }

  /// Equal for packets of one key.
  func name(for delivery: Delivery) -> String {
    let name = "\(delivery.cipher.rawValue) \(delivery.keyID)"
    return derives(delivery.keyID) ? "\(name) \(delivery.context.deviceID)" : name
  }
}
