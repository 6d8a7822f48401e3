import PrismConfig
import PrismProtocol
import PrismStore

/// How large a packet may become (docs/delivery.md, "Packets"; docs/packet.md, "The two bodies").
enum ClaimPlan {
  /// The meta block must fit the frame's 2 bytes once compressed and encrypted. Metas that don't compress at all grow by
  /// gzip's frame and stored blocks and by the cipher's nonce, tag or padding: under 256 bytes in all.
  static let metaPlaintextBytesMax = Limits.packetMetaBlockBytesMax - 256

  /// Claims of `count` packets, with new ids.
  /// - Parameter bytesMax: of each packet, beside the configuration's limit.
  /// - Parameter idTimeMin: as of `KnownReceiver`.
  static func claims(
    _ count: Int, bytesMax: Int, idTimeMin: Int64 = 0, _ configuration: NamespaceConfiguration, _ kind: RowKind,
    _ types: Claim.TypeFilter, _ now: Delivery.Conditions
  ) -> [Claim] {
    (0..<count).map { _ in
      var claim = claim(
        configuration, kind: kind, types: types, packetID: now.newID(since: idTimeMin),
        now: now.instant.unixMilliseconds)
      claim.bytesMax = min(claim.bytesMax, bytesMax, now.flowRestBytes ?? .max)
      return claim
    }
  }

  static func claim(
    _ configuration: NamespaceConfiguration, kind: RowKind, types: Claim.TypeFilter, packetID: PacketID, now: Int64
  ) -> Claim {
    Claim(
      namespace: configuration.name, kind: kind, types: types,
      itemsMax: kind.isReport
        ? min(configuration.maxItem, kind.packetRowsMax ?? .max) : configuration.maxRecordItem,
      bytesMax: configuration.maxBodyBytes,
      metaBytesMax: kind.hasPayload ? metaPlaintextBytesMax : .max,
      packetID: packetID, unixMilliseconds: now)
  }

  /// Bytes of claimed packets that may lie ready behind the one that is on its way, where several fit.
  static let aheadBytesMax = 4 * 1_048_576
  static let aheadMax = 32
  /// Packets larger than this are not read while another is built.
  static let twofoldBytesMax = 8 * 1_048_576

  /// How many packets to claim in one commit: one while other clients wait for the store.
  static func count(lastPacketBytes bytes: Int?, _ now: Delivery.Conditions) -> Int {
    now.shares.hasContention ? 1 : portion(lastPacketBytes: bytes, flowRestBytes: now.flowRestBytes)
  }

  /// How many packets to claim in one commit: half of those that may lie ready. - Parameter bytes: of the last one; nil:
  /// unknown yet.
  static func portion(lastPacketBytes bytes: Int?, flowRestBytes: Int?) -> Int {
    max(1, min(fitting(bytes, in: aheadBytesMax) / 2, fitting(bytes, in: flowRestBytes ?? .max)))
  }

  /// Whether to claim more behind `ahead` packets, while these are built. The largest are claimed one by one. Where traffic
  /// costs, no packet is claimed that the budget does not carry: its rows stay free for another network.
  static func wantsMore(ahead: Int, lastPacketBytes bytes: Int?, flowRestBytes: Int?) -> Bool {
    let isAffordable = flowRestBytes.map { ahead < fitting(bytes, in: $0) } ?? true
    return isAffordable
      && ahead <= (bytes ?? 0 > twofoldBytesMax ? 0 : portion(lastPacketBytes: bytes, flowRestBytes: flowRestBytes))
  }

  private static func fitting(_ bytes: Int?, in rest: Int) -> Int {
    guard let bytes else { return 1 }
    return min(aheadMax, max(rest, 0) / max(bytes, 1))
  }
}
