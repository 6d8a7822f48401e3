import PrismPacket
import PrismProtocol

/// The checks on the way of one packet from its bytes to its rows. Its sender is checked before more memory is spent than its
/// own bytes. Then there must be memory for its rows.
struct PacketOpening: Sendable {
  /// The memory of one row.
  private static let rowBytes = MemoryLayout<OpenedPacket.Row>.stride + MemoryLayout<MetaBlock.Row>.stride

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
    // The text is copied if metas are merged or escapes resolved.
    let metaBytes = 2 * packed.metaBytes + RowReader.spareBytes
    let bytes = packed.packedBytes + packed.workBytes + metaBytes + payloadBytes + delivery.itemCount * Self.rowBytes
    guard bytes <= memory.bytesMax else {
      throw Self.tooLarge("it takes \(bytes) bytes of memory", memory.bytesMax)
    }
    return bytes
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

  /// - Parameter bytes: what its rows take, with their common information.
  static func rowsTooLarge(_ bytes: Int, _ memory: MemoryBudget.Lease) -> CollectorRefusal {
    tooLarge("its rows take \(bytes) bytes of memory", memory.bytesMax)
  }

  private static func tooLarge(_ what: String, _ most: Int) -> CollectorRefusal {
    CollectorRefusal(413, code: .tooLarge, "the packet is too large: \(what); at most \(most) are taken")
  }
}
