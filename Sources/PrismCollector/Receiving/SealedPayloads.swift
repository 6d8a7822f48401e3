import PrismPacket
import PrismProtocol

/// Opens payloads that devices sealed to a key of this collector (docs/packet.md, "Sealed payloads").
struct SealedPayloads: Sendable {
  let keys: [SealingPrivateKey]
  let counts: CollectorCounts?

  init(keys: [SealingPrivateKey] = [], counts: CollectorCounts? = nil) { (self.keys, self.counts) = (keys, counts) }

  /// The packet with its payloads opened. One that no key opens, or that is too large for all memory, stays as it came, for a
  /// holder of its key.
  /// - Throws: 503 without memory.
  func opened(_ packet: OpenedPacket, lease: MemoryBudget.Lease) throws(CollectorRefusal) -> OpenedPacket {
    if keys.isEmpty { return packet }
    var packet = packet
    for index in packet.payloads.indices where packet.payloads[index].starts(with: SealedPayload.magic) {
      let payload = try opened(packet.payloads[index], packet, packet.rows[index], lease)
      counts?.countSealed(payload == nil ? "kept" : "opened")
      if let payload { packet.payloads[index] = payload }
    }
    return packet
  }

  private func opened(
    _ payload: [UInt8], _ packet: OpenedPacket, _ row: OpenedPacket.Row, _ lease: MemoryBudget.Lease
  ) throws(CollectorRefusal) -> [UInt8]? {
    let context = packet.delivery.context
    let report = SealedReport(
      deviceID: context.deviceID, namespace: context.namespace,
      reportID: String(decoding: packet.reports.bytes[row.reportID], as: UTF8.self))
    for key in keys {
      guard let contents = try? SealedPayload.contents(of: payload, with: key, of: report) else { continue }
      // A sender who says more than can ever be taken would send the packet for ever.
      guard lease.mayGrow(by: contents.byteCount) else { return nil }
      guard lease.grow(by: contents.byteCount) else { throw .noMemory }
      return try? contents.unpacked()
    }
    return nil
  }
}
