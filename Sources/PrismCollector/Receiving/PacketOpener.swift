import PrismBase
import PrismPacket
import PrismProtocol

/// Decrypts and unpacks, on a queue of its own.
actor PacketOpener {
  /// Keys of which the reader is kept: each holds decompressors.
  private static let readersMax = 64

  private let executor = DispatchQueueExecutor(label: "prism.collector.packets")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let keys: SenderKeys
  private let sealed: SealedPayloads
  private var readers: [String: PacketReader] = [:]

  init(keys: SenderKeys, sealed: SealedPayloads) { (self.keys, self.sealed) = (keys, sealed) }

  /// - Throws: 400 with the reason's code, 401 for a key that this collector does not have, 503.
  func decrypt(_ delivery: Delivery, body: [UInt8]) throws(CollectorRefusal) -> PackedPacket {
    do throws(PacketError) {
      return try reader(delivery).decrypt(delivery.headers, body: body, mac: delivery.mac)
    } catch { throw Self.refusal(error) }
  }

  /// - Throws: as `decrypt`; 413 over the limits.
  func unpack(_ packet: PackedPacket, of delivery: Delivery) throws(CollectorRefusal) -> ReadPacket {
    do throws(PacketError) { return try reader(delivery).unpack(packet) } catch { throw Self.refusal(error) }
  }

  /// Puts the common information into the rows, and opens sealed payloads.
  /// - Throws: 413 for a row that gets too long by it; 422 for a meta that can't be taken; 503 without memory.
  func merge(
    _ packet: ReadPacket, of delivery: Delivery, lease: MemoryBudget.Lease
  ) throws(CollectorRefusal) -> OpenedPacket {
    let metas: [UInt8]
    do throws(PacketError) { metas = try packet.metas.mergedText() } catch { throw Self.refusal(error) }
    let opened = try OpenedPacket(delivery, UnpackedPacket(metas: metas, payloads: packet.payloads), lease: lease)
    return try sealed.opened(opened, lease: lease)
  }

  private static func refusal(_ error: PacketError) -> CollectorRefusal {
    guard let code = PacketRefusal(rawValue: error.rawValue) else {
      return CollectorRefusal(503, "the packet could not be opened; try again", retryAfterSeconds: 5)
    }
    if code == .tooLarge {
      return CollectorRefusal(413, code: code, "the packet is too large: a row or all of them together")
    }
    return CollectorRefusal(400, code: code, "\(code.rawValue): the body is no packet of these headers and this key")
  }

  private func reader(_ delivery: Delivery) throws(PacketError) -> PacketReader {
    let name = keys.name(for: delivery)
    if let reader = readers[name] { return reader }
    if readers.count >= Self.readersMax { readers = [:] }
    let reader = try PacketReader(cipher: delivery.cipher, key: try keys.secret(for: delivery))
    readers[name] = reader
    return reader
  }
}
