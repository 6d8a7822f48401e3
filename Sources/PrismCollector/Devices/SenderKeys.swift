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
    guard keys[delivery.keyID] != nil else {
      throw CollectorRefusal(401, code: .unknownKey, "this collector has no key of the id that Prism-Key-Id names")
    }
    guard rules[delivery.keyID]?.namespaces?.contains(delivery.context.namespace.text) != false else {
      throw CollectorRefusal(403, "the key that Prism-Key-Id names is not for this namespace")
    }
  }

  /// The key of the packet: of its device, where the key's file holds a master.
  func secret(for delivery: Delivery) throws(PacketError) -> Secret {
    let secret = keys[delivery.keyID] ?? Secret([])
    guard rules[delivery.keyID]?.derivesForDevice == true else { return secret }
    return try DeviceKey.derived(
      master: secret, keyID: delivery.keyID, deviceID: delivery.context.deviceID, cipher: delivery.cipher)
  }

  /// Equal for packets of one key.
  func name(for delivery: Delivery) -> String {
    let name = "\(delivery.cipher.rawValue) \(delivery.keyID)"
    return rules[delivery.keyID]?.derivesForDevice == true ? "\(name) \(delivery.context.deviceID)" : name
  }
}
