/// The identity of a packet: who sent it, in which stream, under which id.
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
}
