import PrismBase
import PrismPacket
import PrismProtocol
import PrismStore

/// A packet whose rows are compressed. Each attempt encrypts it again, with its own headers and nonces.
struct BuiltPacket: Sendable {
  var context: PacketContext
  var itemCount: Int
  var ledgerHeader: String
  var seal: PacketSeal
  var contents: PackedContents
  /// How the clock was set when its rows were read.
  var clock: ClockSetting
  /// Types that left on unmetered networks only when it was built, and whether it has rows of them.
  var wifiOnlyTypes: TypeSet
  var hasWifiOnlyRows: Bool
}

/// Compresses and encrypts packets, on a queue of its own: a MiB takes milliseconds.
actor PacketBuilder {
  nonisolated let executor = DispatchQueueExecutor(label: "prism.packets")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The last one used: namespaces mostly share their key, and take turns if they don't.
  private var writer: (seal: PacketSeal, value: PacketWriter)?

  init() {}

  /// Drops the key that was used last: settings changed, and no packet may need it again.
  func forgetKey() { writer = nil }

  /// Several in one go: a hop between queues costs as much as a small packet.
  func build(
    _ packets: [ClaimedPacket], _ seal: PacketSeal, wifiOnly: TypeSet
  ) throws(PacketError) -> [BuiltPacket] {
    var built: [BuiltPacket] = []
    for packet in packets { built.append(try build(packet, seal, wifiOnly: wifiOnly)) }
    return built
  }

  /// - Throws: `keyLength`, `frameOverflow`, `internal`.
  func build(_ packet: ClaimedPacket, _ seal: PacketSeal, wifiOnly: TypeSet) throws(PacketError) -> BuiltPacket {
    let context = PacketContext(
      deviceID: seal.deviceID, namespace: packet.namespace, packetID: packet.id, kind: packet.kind)
    let contents = try writer(for: seal).pack(
      metas: packet.metas, payloads: packet.kind.hasPayload ? packet.payloads : nil)
    return BuiltPacket(
      context: context, itemCount: packet.itemCount, ledgerHeader: packet.ledgerHeader, seal: seal, contents: contents,
      clock: packet.clock, wifiOnlyTypes: wifiOnly,
      hasWifiOnlyRows: packet.kind == .records
        ? RecordLines.contain(wifiOnly, lines: packet.metas)
        : MonitorTypes.contain(wifiOnly, metas: packet.metas, namespace: packet.namespace))
  }

  /// Encrypts a packet for one attempt.
  /// - Parameter time: when the attempt begins. `Prism-Sent-Time` tells it as the clock was set when the rows were read, so
  ///   that the receiver corrects their times by the same clock.
  /// - Throws: `internal` without memory or randomness.
  func seal(
    _ packet: BuiltPacket, dependsOn predecessor: PacketID?, pendingCount: Int, at time: ClockReading
  ) throws(PacketError) -> WrittenPacket {
    let context = packet.context
    let sentTime = time.unixMilliseconds - packet.clock.step(to: time.setting)
    let headers = PacketHeaders(
      deviceID: context.deviceID, namespace: context.namespace, packetID: context.packetID, kind: context.kind,
      dependsOn: predecessor, itemCount: packet.itemCount, ledger: packet.ledgerHeader, pendingCount: pendingCount,
      sentTime: sentTime, format: packet.contents.format)
    return try writer(for: packet.seal).seal(headers, packet.contents)
  }

  private func writer(for seal: PacketSeal) throws(PacketError) -> PacketWriter {
    if let writer, writer.seal == seal { return writer.value }
    let value = try PacketWriter(
      cipher: seal.cipher, keyID: seal.keyID, key: seal.key, encoding: seal.encoding, compression: seal.compression,
      compressesAll: seal.compressesAll, dictionary: seal.dictionary)
    writer = (seal, value)
    return value
  }
}
