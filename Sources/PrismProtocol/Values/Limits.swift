/// The protocol's own limits; what an operator may set is in the configuration.
public enum Limits {
  /// A meta once merged with the common information.
  public static let metaBytesMax = 10 * 1024
  /// A request line without its base64 payload.
  public static let lineBytesMax = 16 * 1024
  /// The deepest nesting of JSON that is accepted.
  public static let jsonDepthMax = 64
  /// One value of the common information that a client gives in its greeting.
  public static let commonValueBytesMax = 256
  /// The frame's 2-byte length of the meta block (after gzip and AES), and its 1-byte count of payloads
  /// (docs/packet.md).
  public static let packetMetaBlockBytesMax = 65_535
  /// The most payloads in one packet; their number is a byte.
  public static let packetPayloadCountMax = 255
  /// The bytes of one line that are read, beside its payload; the rest is skipped and the line is refused.
  public static let scannedBytesMax = 64 * 1024
  /// Answers that a connection may leave unread before its requests wait.
  public static let unreadBytesMax = 256 * 1024
  /// Of one HTTP body.
  public static let bodyLinesMax = 10_000
}
