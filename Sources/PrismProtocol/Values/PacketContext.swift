/// The identity of a packet. It binds blocks to their packet, so that a block can't be replayed elsewhere
/// (docs/packet.md).
public struct PacketContext: Sendable, Equatable, Hashable {
  /// The device that sends it.
  public var deviceID: String
  /// The namespace of its rows.
  public var namespace: NamespaceName
  /// The id, the same in each attempt.
  public var packetID: PacketID
  /// Metas, or metas with payloads.
  public var kind: RowKind

  public init(deviceID: String, namespace: NamespaceName, packetID: PacketID, kind: RowKind) {
    (self.deviceID, self.namespace, self.packetID, self.kind) = (deviceID, namespace, packetID, kind)
  }

  /// `prism1` LF device id LF namespace LF packet id LF kind LF
  public var bytes: [UInt8] {
    Array("prism1\n\(deviceID)\n\(namespace)\n\(packetID)\n\(kind.name)\n".utf8)
  }
}
