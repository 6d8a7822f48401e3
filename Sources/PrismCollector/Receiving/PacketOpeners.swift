import Glibc
import PrismPacket
import PrismProtocol
import Synchronization

/// Opens packets on all cores, within limits that are checked before the work: a packet costs what its own body does until
/// it is known to be small enough, and no more memory than there is for all packets together.
final class PacketOpeners: Sendable {
  /// What the place of a row takes.
  private static let rowBytes = MemoryLayout<OpenedPacket.Row>.stride

  private let keys: Set<String>
  private let openers: [PacketOpener]
  /// Packets at each opener.
  private let loads: Mutex<[Int]>
  let memory: MemoryBudget

  /// - Parameter memoryBytesMax: of all packets, from their decryption until they are stored.
  init(keys: [String: Secret], memoryBytesMax: Int, count: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))) {
    self.keys = Set(keys.keys)
    openers = (0..<count).map { _ in PacketOpener(keys: keys) }
    loads = Mutex([Int](repeating: 0, count: count))
    memory = MemoryBudget(bytesMax: memoryBytesMax)
  }

  /// - Throws: 400 with the reason's code, 401 for a key that this collector does not have, 413 over the limits, 422 for a
  ///   meta that can't be taken, 503 where too much is waiting for memory.
  func open(_ delivery: Delivery, body: [UInt8]) async throws(CollectorRefusal) -> OpenedPacket {
    guard keys.contains(delivery.keyID) else {
      throw CollectorRefusal(401, code: .unknownKey, "this collector has no key of the id that Prism-Key-Id names")
    }
    let index = begin()
    defer { loads.withLock { $0[index] -= 1 } }
    let decrypted = try await openers[index].decrypt(delivery, body: body)
    do throws(CollectorRefusal) { return try await unpack(decrypted, delivery, by: openers[index]) } catch {
      var refusal = error
      refusal.sender = delivery.context
      throw refusal
    }
  }

  private func unpack(
    _ decrypted: DecryptedPacket, _ delivery: Delivery, by opener: PacketOpener
  ) async throws(CollectorRefusal) -> OpenedPacket {
    try check(decrypted, delivery)
    // A store makes a copy of one payload at a time.
    let payloadBytes = decrypted.payloadBytes + decrypted.largestPayloadBytes
    let bytes = decrypted.packedBytes + decrypted.metaBytes + payloadBytes + delivery.itemCount * Self.rowBytes
    guard bytes <= memory.bytesMax else { throw Self.tooLarge("it takes \(bytes) bytes of memory", memory.bytesMax) }
    guard let lease = await memory.take(bytes) else {
      throw CollectorRefusal(503, "too many packets wait for memory; try again", retryAfterSeconds: 1)
    }
    return try await opener.unpack(decrypted, of: delivery, lease: lease)
  }

  /// The opener that has the least to do.
  private func begin() -> Int {
    loads.withLock { loads in
      let index = loads.indices.min { loads[$0] < loads[$1] } ?? 0
      loads[index] += 1
      return index
    }
  }

  private func check(_ packet: DecryptedPacket, _ delivery: Delivery) throws(CollectorRefusal) {
    // Each meta, and the line feed between two.
    let metaBytesMax = delivery.itemCount * (Limits.metaBytesMax + 1)
    guard packet.metaBytes <= metaBytesMax else {
      throw Self.tooLarge("its metas unpack to \(packet.metaBytes) bytes", metaBytesMax)
    }
    guard delivery.context.kind == .meta || packet.payloadCount == delivery.itemCount else {
      throw CollectorRefusal(
        400, code: .countMismatch,
        "the packet holds \(packet.payloadCount) payloads, Prism-Item-Count is \(delivery.itemCount)")
    }
  }

  private static func tooLarge(_ what: String, _ most: Int) -> CollectorRefusal {
    CollectorRefusal(413, code: .tooLarge, "the packet is too large: \(what); at most \(most) are taken")
  }
}
