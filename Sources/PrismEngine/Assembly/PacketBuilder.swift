import PrismBase
import PrismPacket
import PrismProtocol
import PrismStore

/// A packet's bytes, ready to be posted once. A further attempt is built anew: the same plaintext, another nonce.
struct BuiltPacket: Sendable {
  var context: PacketContext
  var itemCount: Int
  var ledgerHeader: String
  var seal: PacketSeal
  var body: [UInt8]
  /// The value of `Prism-Mac`.
  var mac: String?
  var rawBytes: Int
  /// Types that left on unmetered networks only when it was built, and whether it has rows of them.
  var wifiOnlyTypes: Set<ReportType>
  var hasWifiOnlyRows: Bool
}

/// Compresses and encrypts packets, on a queue of its own: a MiB takes milliseconds.
actor PacketBuilder {
  nonisolated let executor = DispatchQueueExecutor(label: "prism.packets")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The last one used: namespaces mostly share their key, and take turns where they don't.
  private var encoder: (seal: PacketSeal, value: PacketEncoder)?

  init() {}

  /// Several in one go: a hop between queues costs as much as a small packet.
  func build(
    _ packets: [ClaimedPacket], _ seal: PacketSeal, wifiOnly: Set<ReportType>
  ) throws(PacketError) -> [BuiltPacket] {
    var built: [BuiltPacket] = []
    for packet in packets { built.append(try build(packet, seal, wifiOnly: wifiOnly)) }
    return built
  }

  /// - Throws: `keyLength`, `frameOverflow`, `internal`.
  func build(_ packet: ClaimedPacket, _ seal: PacketSeal, wifiOnly: Set<ReportType>) throws(PacketError) -> BuiltPacket
  {
    let context = PacketContext(
      deviceID: seal.deviceID, namespace: packet.namespace, packetID: packet.id, kind: packet.kind)
    let encoded = try encoder(for: seal).encode(context: context, metas: packet.metas, payloads: packet.payloads)
    return BuiltPacket(
      context: context, itemCount: packet.itemCount, ledgerHeader: packet.ledgerHeader, seal: seal,
      body: encoded.body, mac: encoded.mac, rawBytes: encoded.rawBytes, wifiOnlyTypes: wifiOnly,
      hasWifiOnlyRows: MonitorTypes.contain(wifiOnly, metas: packet.metas, namespace: packet.namespace))
  }

  private func encoder(for seal: PacketSeal) throws(PacketError) -> PacketEncoder {
    if let encoder, encoder.seal == seal { return encoder.value }
    let value = try PacketEncoder(cipher: seal.cipher, key: seal.key, compression: seal.compression)
    encoder = (seal, value)
    return value
  }
}
