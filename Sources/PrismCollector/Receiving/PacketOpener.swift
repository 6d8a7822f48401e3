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
  private let dictionaries: Dictionaries?
  private var readers: [String: PacketReader] = [:]
  private let commons = CommonCache()

  init(keys: SenderKeys, sealed: SealedPayloads, dictionaries: Dictionaries?) {
    (self.keys, self.sealed, self.dictionaries) = (keys, sealed, dictionaries)
  }

  /// A packet on its way: opened, or waiting for something that takes a while.
  enum Progress: Sendable {
    case opened(OpenedPacket)
    /// Its memory has to be waited for, or the check of its sender.
    case decrypted(PackedPacket)
  }

  /// Opens the packet in one go, if its sender is known and there is memory for it now.
  /// - Throws: 400 with the reason's code, 401 for a key that this collector does not have, 503; 413 over the limits; those
  ///   of the checks.
  func open(_ opening: PacketOpening, body: [UInt8]) throws(CollectorRefusal) -> Progress {
    let packed: PackedPacket
    do throws(PacketError) {
      packed = try reader(opening).decrypt(opening.delivery.headers, body: body, mac: opening.delivery.mac)
    } catch { throw CollectorRefusal(error) }
    do throws(CollectorRefusal) {
      guard try opening.sender?.begin(packed, rows: opening.delivery.itemCount) ?? true,
        let lease = opening.memory.takeAtOnce(try opening.bytes(of: packed))
      else { return .decrypted(packed) }
      return .opened(try unpack(packed, opening, lease))
    } catch {
      var refusal = error
      refusal.sender = opening.delivery.context
      throw refusal
    }
  }

  /// Unpacks, reads the rows, and opens sealed payloads.
  /// - Throws: 400, 413 over the limits; 413 for a row that gets too long; 422 for a meta that can't be taken; 503 without
  ///   memory.
  func unpack(
    _ packed: PackedPacket, _ opening: PacketOpening, _ lease: MemoryBudget.Lease
  ) throws(CollectorRefusal) -> OpenedPacket {
    let read: ReadPacket
    do throws(PacketError) { read = try reader(opening).unpack(packed) } catch { throw CollectorRefusal(error) }
    let delivery = opening.delivery
    if delivery.context.kind.isReport {
      dictionaries?.offer(read.metas, delivery, derivesKeys: keys.derives(delivery.keyID))
    }
    let opened = try OpenedPacket(delivery, read, commons, lease: lease)
    return try sealed.opened(opened, lease: lease)
  }

  private func reader(_ opening: PacketOpening) throws(PacketError) -> PacketReader {
    let (delivery, dictionary) = (opening.delivery, opening.dictionary)
    let name = keys.name(for: delivery) + (dictionary.map { " \($0.id)" } ?? "")
    if let reader = readers[name] { return reader }
    if readers.count >= Self.readersMax { readers = [:] }
    let reader = try PacketReader(
      cipher: delivery.cipher, key: try keys.secret(for: delivery), dictionary: dictionary, commons: commons)
    readers[name] = reader
    return reader
  }
}
