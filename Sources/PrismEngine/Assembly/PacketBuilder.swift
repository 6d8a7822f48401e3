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
  /// The key that was counted last, as its namespaces mostly share it.
  private var counted: (secret: Secret, key: CountedKey)?
  nonisolated let keys: KeyUse
  nonisolated let spare = SpareLines()

  /// - Parameter keys: counts the blocks of each attempt.
  init(keys: KeyUse) { self.keys = keys }

  /// Drops the key that was used last: settings changed, and no packet may need it again.
  func forgetKey() { (writer, counted) = (nil, nil) }

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
      metas: packet.metas, payloads: packet.kind.hasPayload ? packet.payloads : nil, of: packet.kind)
    return BuiltPacket(
      context: context, itemCount: packet.itemCount, ledgerHeader: packet.ledgerHeader, seal: seal, contents: contents,
      clock: packet.clock, wifiOnlyTypes: wifiOnly,
      hasWifiOnlyRows: packet.kind.isReport
        ? MonitorTypes.contain(wifiOnly, metas: packet.metas, namespace: packet.namespace)
        : RecordLines.contain(wifiOnly, lines: packet.metas))
  }

  /// Encrypts a packet for one attempt, and counts its blocks before.
  /// - Throws: `KeyUse.Fault`, `PacketError`.
  /// - Parameter time: read when it is encrypted. `Prism-Sent-Time` tells it as the clock was set when the rows were read, so
  ///   that the receiver corrects their times by the same clock.
  func seal(
    _ packet: BuiltPacket, dependsOn predecessor: PacketID?, pendingCount: Int, at time: any TimeSource
  ) async throws -> WrittenPacket {
    let (blocks, key) = (packet.contents.blockCount, try counted(packet.seal))
    // Mostly without a hop to another executor.
    if !keys.takes(blocks, of: key) { try await keys.take(blocks, of: key) }
    return try seal(packet, dependsOn: predecessor, pendingCount: pendingCount, at: ClockReading(time))
  }

  private func counted(_ seal: PacketSeal) throws(KeyUse.Fault) -> CountedKey {
    if let counted, counted.key.id == seal.keyID, counted.secret == seal.key { return counted.key }
    do throws(PacketError) {
      let key = try CountedKey(id: seal.keyID, secret: seal.key)
      counted = (seal.key, key)
      return key
    } catch { throw .notWritten("it has no fingerprint: \(error.rawValue)") }
  }

  private func seal(
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
      compressesAll: seal.compressesAll, dictionary: seal.dictionary, form: seal.form)
    writer = (seal, value)
    return value
  }
}

/// The tables of a packet's operations, read from its plaintext.
enum RecordLines {
  /// Whether an operation on one of `tables` is among `lines`, which are joined with line feeds.
  static func contain(_ tables: TypeSet, lines: [UInt8]) -> Bool {
    if tables.isEmpty { return false }
    return lines.split(separator: UInt8(ascii: "\n")).contains { line in
      RecordOperation(line: Array(line)).flatMap { ReportType($0.table.text) }.map(tables.contains) ?? false
    }
  }
}

/// The types of a packet's rows, read from its plaintext: every meta begins with `MONITOR_TYPE` (`MetaSplicing`).
enum MonitorTypes {
  private static let head = Array(#"{"MONITOR_TYPE":""#.utf8)

  /// Whether a row of one of `types` is among `metas`, which are joined with line feeds.
  static func contain(_ types: TypeSet, metas: [UInt8], namespace: NamespaceName) -> Bool {
    if types.isEmpty { return false }
    let prefixBytes = namespace.isBusiness ? namespace.text.utf8.count + 1 : 0
    var known: [ArraySlice<UInt8>: Bool] = [:]
    return metas.split(separator: UInt8(ascii: "\n")).contains { meta in
      guard meta.starts(with: head) else { return false }
      let name = meta.dropFirst(head.count).prefix { $0 != UInt8(ascii: "\"") }.dropFirst(prefixBytes)
      if let isContained = known[name] { return isContained }
      let isContained = ReportType(String(decoding: name, as: UTF8.self)).map(types.contains) ?? false
      known[name] = isContained
      return isContained
    }
  }
}
