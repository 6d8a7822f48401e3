/// Gzip for what is no packet (RFC 1952).
package enum Gzip {
  /// - Throws: `internal` without memory.
  package static func member(of bytes: [UInt8]) throws(PacketError) -> [UInt8] { try GzipCompressor().compress(bytes) }
}
