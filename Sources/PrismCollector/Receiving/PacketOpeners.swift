import Glibc
import PrismPacket
import PrismProtocol
import Synchronization

/// Opens packets on all cores, within limits that are checked before the work. A packet costs no more than its own body
/// until it is known to be small enough. All packets together take no more memory than the limit.
final class PacketOpeners: Sendable {
  /// The memory of one row.
  private static let rowBytes = MemoryLayout<OpenedPacket.Row>.stride
  /// Rows with their common information are mostly no larger than this many times the block that they come in.
  private static let mergedRatio = 8

  private let keys: SenderKeys
  private let openers: [PacketOpener]
  /// Packets at each opener.
  private let loads: Mutex<[Int]>
  let memory: MemoryBudget

  /// - Parameter memoryBytesMax: of all packets, from their decryption until they are stored.
  init(
    keys: [String: Secret], rules: [String: KeyRule] = [:], sealed: SealedPayloads = SealedPayloads(),
    memoryBytesMax: Int,
    count: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
  ) {
    let keys = SenderKeys(keys, rules: rules)
    self.keys = keys
    openers = (0..<count).map { _ in PacketOpener(keys: keys, sealed: sealed) }
    loads = Mutex([Int](repeating: 0, count: count))
    memory = MemoryBudget(bytesMax: memoryBytesMax)
  }

  convenience init(_ options: CollectorOptions, _ counts: CollectorCounts) {
    self.init(
      keys: options.keys, rules: options.keyRules, sealed: SealedPayloads(keys: options.sealKeys, counts: counts),
      memoryBytesMax: options.memoryBytesMax)
  }

  /// - Throws: 400 with the reason's code, 401 for a key that this collector does not have, 403 for one that is not for
  ///   the namespace. Also 413 over the limits, 422 for a meta that can't be taken, 503 if too many packets wait.
  /// - Parameter proven: called once the decryption has proved who the sender is, before the packet is unpacked.
  func open(
    _ delivery: Delivery, body: [UInt8], proven: () async throws(CollectorRefusal) -> Void = {}
  ) async throws(CollectorRefusal) -> OpenedPacket {
    try keys.check(delivery)
    let index = begin()
    defer { loads.withLock { $0[index] -= 1 } }
    let decrypted = try await openers[index].decrypt(delivery, body: body)
    do throws(CollectorRefusal) {
      try await proven()
      return try await unpack(decrypted, delivery, by: openers[index])
    } catch {
      var refusal = error
      refusal.sender = delivery.context
      throw refusal
    }
  }

  /// The value of `Prism-Receipt` for an answer with this body.
  /// - Throws: 503 without memory.
  func receipt(for delivery: Delivery, answer: [UInt8]) throws(CollectorRefusal) -> String {
    do throws(PacketError) {
      return try PacketReceipt(key: keys.secret(for: delivery)).text(for: delivery.headers, answer: answer)
    } catch { throw CollectorRefusal(503, "the receipt could not be made; try again", retryAfterSeconds: 5) }
  }

  private func unpack(
    _ packed: PackedPacket, _ delivery: Delivery, by opener: PacketOpener
  ) async throws(CollectorRefusal) -> OpenedPacket {
    try check(packed, delivery)
    // A store makes a copy of one payload at a time.
    let payloadBytes = packed.payloadBytes + packed.largestPayloadBytes
    let mergedBytes = min(delivery.itemCount * delivery.context.kind.lineBytesMax, packed.metaBytes * Self.mergedRatio)
    let bytes =
      packed.packedBytes + packed.metaBytes + mergedBytes + payloadBytes + delivery.itemCount * Self.rowBytes
    guard bytes <= memory.bytesMax else { throw Self.tooLarge("it takes \(bytes) bytes of memory", memory.bytesMax) }
    guard let lease = await memory.take(bytes) else { throw .noMemory }
    let read = try await opener.unpack(packed, of: delivery)
    // The size of the rows with their common information is known only now. To wait for more would hold the memory that
    // this packet has.
    let more = max(0, read.metas.mergedBytesMax - mergedBytes)
    guard bytes + more <= memory.bytesMax else {
      throw Self.tooLarge("its rows take \(bytes + more) bytes of memory", memory.bytesMax)
    }
    guard lease.grow(by: more) else { throw .noMemory }
    return try await opener.merge(read, of: delivery, lease: lease)
  }

  /// The opener that has the least to do.
  private func begin() -> Int {
    loads.withLock { loads in
      let index = loads.indices.min { loads[$0] < loads[$1] } ?? 0
      loads[index] += 1
      return index
    }
  }

  private func check(_ packet: PackedPacket, _ delivery: Delivery) throws(CollectorRefusal) {
    // Each row with its common information, and the characters around the two lines.
    let metaBytesMax = delivery.itemCount * (delivery.context.kind.lineBytesMax + 32)
    guard packet.metaBytes <= metaBytesMax else {
      throw Self.tooLarge("its metas unpack to \(packet.metaBytes) bytes", metaBytesMax)
    }
    guard !delivery.context.kind.hasPayload || packet.payloadCount == delivery.itemCount else {
      throw CollectorRefusal(
        400, code: .countMismatch,
        "the packet holds \(packet.payloadCount) payloads, Prism-Item-Count is \(delivery.itemCount)")
    }
  }

  private static func tooLarge(_ what: String, _ most: Int) -> CollectorRefusal {
    CollectorRefusal(413, code: .tooLarge, "the packet is too large: \(what); at most \(most) are taken")
  }
}
