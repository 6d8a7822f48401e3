import PrismPacket
import PrismProtocol

/// The checks on the way of one packet from its bytes to its rows. Its sender is checked before more memory is spent than its
/// own bytes. Then there must be memory for its rows.
struct PacketOpening: Sendable {
  /// The memory of one row.
  private static let rowBytes = MemoryLayout<OpenedPacket.Row>.stride
  /// Rows with their common information are mostly no larger than this many times the block that they come in.
  private static let mergedRatio = 8

  let delivery: Delivery
  /// The one that the packet names.
  let dictionary: CompressionDictionary?
  /// nil: any sender is taken.
  let sender: SenderCheck?
  let memory: MemoryBudget

  /// The memory that the packet takes, with what its rows are expected to take.
  /// - Throws: 413, 400 before it is unpacked.
  func bytes(of packed: PackedPacket) throws(CollectorRefusal) -> Int {
    try check(packed)
    // A store makes a copy of one payload at a time.
    let payloadBytes = packed.payloadBytes + packed.largestPayloadBytes
    let bytes =
      packed.packedBytes + packed.metaBytes + mergedBytes(packed) + payloadBytes + delivery.itemCount * Self.rowBytes
    guard bytes <= memory.bytesMax else {
      throw Self.tooLarge("it takes \(bytes) bytes of memory", memory.bytesMax)
    }
    return bytes
  }

  /// The size of the rows with their common information is known only once they are unpacked. To wait for more would hold
  /// the memory that the packet has.
  func grow(_ lease: MemoryBudget.Lease, for read: ReadPacket, _ packed: PackedPacket) throws(CollectorRefusal) {
    let more = max(0, read.metas.mergedBytesMax - mergedBytes(packed))
    guard lease.mayGrow(by: more) else {
      throw Self.tooLarge("its rows take \(lease.bytesTaken + more) bytes of memory", memory.bytesMax)
    }
    guard lease.grow(by: more) else { throw .noMemory }
  }

  private func mergedBytes(_ packed: PackedPacket) -> Int {
    min(delivery.itemCount * delivery.context.kind.lineBytesMax, packed.metaBytes * Self.mergedRatio)
  }

  private func check(_ packet: PackedPacket) throws(CollectorRefusal) {
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
