/// Why bytes are no packet. The raw values are those of the test vectors, of a collector's answers and of its metrics.
public enum PacketError: String, Error, Sendable, CaseIterable {
  case shortHeader, lengthMismatch, decryptionFailed, unpackFailed, tooLarge, countMismatch, macMismatch
  /// The key's length is not the cipher's.
  case keyLength
  /// Encoding: the meta block or the number of payloads is over what the frame can say.
  case frameOverflow
  /// The library refused for want of memory or randomness, or a body that lies in a file can't be read.
  case `internal`
}

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
