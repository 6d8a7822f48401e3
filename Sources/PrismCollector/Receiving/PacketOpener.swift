import PrismBase
import PrismPacket
import PrismProtocol

/// Decrypts and unpacks, on a queue of its own.
actor PacketOpener {
  private let executor = DispatchQueueExecutor(label: "prism.collector.packets")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let keys: [String: Secret]
  private var decoders: [String: PacketDecoder] = [:]

  init(keys: [String: Secret]) { self.keys = keys }

  /// - Throws: 400 with the reason's code, 401 for a key that this collector does not have, 503.
  func decrypt(_ delivery: Delivery, body: [UInt8]) throws(CollectorRefusal) -> DecryptedPacket {
    do throws(PacketError) {
      return try decoder(delivery).decrypt(context: delivery.context, body: body, mac: delivery.mac)
    } catch { throw Self.refusal(error) }
  }

  /// - Throws: as `decrypt`; 422 for a meta that can't be taken.
  func unpack(
    _ packet: DecryptedPacket, of delivery: Delivery, lease: MemoryBudget.Lease
  ) throws(CollectorRefusal) -> OpenedPacket {
    let unpacked: UnpackedPacket
    do throws(PacketError) { unpacked = try decoder(delivery).unpack(packet) } catch { throw Self.refusal(error) }
    return try OpenedPacket(delivery, unpacked, lease: lease)
  }

  private static func refusal(_ error: PacketError) -> CollectorRefusal {
    guard let code = PacketRefusal(rawValue: error.rawValue) else {
      return CollectorRefusal(503, "the packet could not be opened; try again", retryAfterSeconds: 5)
    }
    return CollectorRefusal(400, code: code, "\(code.rawValue): the body is no packet of these headers and this key")
  }

  private func decoder(_ delivery: Delivery) throws(PacketError) -> PacketDecoder {
    let name = "\(delivery.cipher.rawValue) \(delivery.keyID)"
    if let decoder = decoders[name] { return decoder }
    let decoder = try PacketDecoder(cipher: delivery.cipher, key: keys[delivery.keyID] ?? Secret([]))
    decoders[name] = decoder
    return decoder
  }
}
