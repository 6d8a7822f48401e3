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
