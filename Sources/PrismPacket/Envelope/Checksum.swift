import CDeflate
import COpenSSL
import PrismBase
import PrismProtocol

/// Tells whether bytes are those that were written.
public enum Checksum {
  /// SHA-256 as 64 hexadecimal digits.
  public static func sha256(_ bytes: [UInt8]) throws(PacketError) -> String {
    var result = [UInt8](repeating: 0, count: 32)
    guard EVP_Digest(bytes, bytes.count, &result, nil, EVP_sha256(), nil) == 1 else { throw .internal }
    return Hex.encode(result)
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
