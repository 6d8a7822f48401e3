import COpenSSL
import PrismProtocol

/// Tells whether bytes are those that were written.
public enum Checksum {
  /// SHA-256 as 64 hexadecimal digits.
  public static func sha256(_ bytes: [UInt8]) throws(PacketError) -> String {
    var result = [UInt8](repeating: 0, count: 32)
    guard EVP_Digest(bytes, bytes.count, &result, nil, EVP_sha256(), nil) == 1 else { throw .internal }
    return Hex.encode(result)
  }
}
