/// The most that a packet may unpack to.
public struct PacketLimits: Sendable, Equatable {
  /// Bytes of the meta block.
  public var metaBlockBytesMax: Int
  /// Bytes of all payloads together.
  public var payloadBytesMax: Int
  /// Rows in the packet.
  public var rowsMax: Int

  /// The default takes all that a daemon sends within its ceilings (`limits.maxBodyMByte` is at most 64). The exception
  /// is the meta block of a payload packet: at most 255 metas of 10,240 bytes.
  public init(metaBlockBytesMax: Int = 32 * 1_048_576, payloadBytesMax: Int = 65 * 1_048_576, rowsMax: Int = 10_000) {
    (self.metaBlockBytesMax, self.payloadBytesMax, self.rowsMax) = (metaBlockBytesMax, payloadBytesMax, rowsMax)
  }
}
