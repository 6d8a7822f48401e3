/// Who and what a packet is: binds its blocks to it, so that none can be replayed elsewhere (docs/packet.md).
public struct PacketContext: Sendable, Equatable, Hashable {
  public var deviceID: String
  public var namespace: NamespaceName
  public var packetID: PacketID
  public var kind: ReportKind

  public init(deviceID: String, namespace: NamespaceName, packetID: PacketID, kind: ReportKind) {
    (self.deviceID, self.namespace, self.packetID, self.kind) = (deviceID, namespace, packetID, kind)
  }

  /// `prism1` LF device id LF namespace LF packet id LF kind LF
  public var bytes: [UInt8] {
    Array("prism1\n\(deviceID)\n\(namespace)\n\(packetID)\n\(kind.rawValue)\n".utf8)
  }
}
