import PrismHTTP
import PrismPacket
import PrismProtocol

struct SenderKeys: Sendable {
  private let keys: [String: Secret]
  private let rules: [String: KeyRule]
  private let standings: DeviceStandings?

  /// - Parameter rules: of the keys that are not for all devices and namespaces alike.
  /// - Parameter standings: nil: no device was ever forgotten.
  init(_ keys: [String: Secret], rules: [String: KeyRule] = [:], standings: DeviceStandings? = nil) {
    (self.keys, self.rules, self.standings) = (keys, rules, standings)
  }

  /// Reads the generations of devices' keys again, where the key is derived and they are too old.
  /// - Throws: 503 while nothing is known.
  func refresh(_ keyID: String) async throws(CollectorRefusal) {
    if derives(keyID) { try await standings?.known() }
  }

  /// - Throws: 401 for a key that this collector does not have, 403 for a namespace that is not the key's.
  func check(_ id: String, for namespace: NamespaceName) throws(CollectorRefusal) {
    guard keys[id] != nil else {
      throw CollectorRefusal(401, code: .unknownKey, "this collector has no key of the id that Prism-Key-Id names")
    }
    guard rules[id]?.namespaces?.contains(namespace.text) != false else {
      throw CollectorRefusal(403, "the key that Prism-Key-Id names is not for this namespace")
    }
  }

  /// The key of the packet: of its device, where the key's file holds a master.
  func secret(for delivery: Delivery) throws(PacketError) -> Secret {
    try secret(delivery.keyID, of: delivery.context.deviceID, cipher: delivery.cipher)
  }

  func secret(_ id: String, of device: String, cipher: Cipher) throws(PacketError) -> Secret {
    let secret = keys[id] ?? Secret([])
    guard derives(id) else { return secret }
    return try DeviceKey.derived(
      master: secret, keyID: id, deviceID: device, generation: standings?.generation(of: device) ?? 0, cipher: cipher)
  }

  /// Whether a holder of the device's key asks. A question may be without a proof, or by a key that only another collector has.
  func prove(_ question: ConfigurationQuestion, _ request: HTTPRequest) async -> Bool {
    guard let id = request.header("prism-key-id"), keys[id] != nil,
      let cipher = request.header("prism-cipher").flatMap({ Cipher(rawValue: $0) }), (try? await refresh(id)) != nil,
      let secret = try? secret(id, of: question.deviceID, cipher: cipher)
    else { return false }
    return (try? question.isProven(by: request.header("prism-mac"), key: secret)) ?? false
  }

  /// Whether each device has a key of its own.
  func derives(_ keyID: String) -> Bool { rules[keyID]?.derivesForDevice == true }

  /// Equal for packets of one key.
  func name(for delivery: Delivery) -> String {
    let name = "\(delivery.cipher.rawValue) \(delivery.keyID)"
    guard derives(delivery.keyID) else { return name }
    let device = delivery.context.deviceID
    return "\(name) \(device) \(standings?.generation(of: device) ?? 0)"
  }
}

/// The rule for a key: which senders may use it, and how.
public struct KeyRule: Sendable, Equatable {
  /// The file holds a master: each device's own key is made from it (docs/packet.md, "Keys").
  public var derivesForDevice = false
  /// Namespaces that are taken under the key; nil: all.
  public var namespaces: Set<String>?
}

/// The check of the device that a packet proved to be of.
struct SenderCheck: Sendable {
  let devices: DeviceGate
  let device: String
  private let isLimited: Bool

  init(_ devices: DeviceGate, _ delivery: Delivery) {
    (self.devices, device, isLimited) = (devices, delivery.context.deviceID, delivery.isLimited)
  }

  /// Counts the packet. Never waits.
  /// - Returns: false: it is not known now whether the device is revoked; ask `finish`.
  /// - Throws: 403 for a revoked device.
  func begin() throws(CollectorRefusal) -> Bool {
    if isLimited { devices.admission.count(device) }
    return try devices.standings.checkNow(device)
  }

  /// - Throws: 403 for a revoked device, 503 while nothing is known.
  func finish() async throws(CollectorRefusal) { try await devices.standings.check(device) }
}
