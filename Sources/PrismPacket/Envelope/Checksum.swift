import CDeflate
import PrismBase
import PrismProtocol

/// Tells whether bytes are those that were written.
public enum Checksum {
  /// SHA-256 as 64 hexadecimal digits.
  public static func sha256(_ bytes: [UInt8]) throws(PacketError) -> String {
    Hex.encode(try Hashing.sha256(bytes))
  }

  /// The CRC-32 of gzip over pieces, one after the other; against damage, not against intent.
  public struct CRC32: Sendable {
    /// The checksum of the bytes so far.
    public private(set) var value: UInt32 = 0
    public init() {}

    /// Adds `bytes` to the checksum.
    public mutating func add(_ bytes: UnsafeRawBufferPointer) {
      // Without an address the library would begin again.
      if bytes.count > 0 { value = libdeflate_crc32(value, bytes.baseAddress, bytes.count) }
    }
  }
}
