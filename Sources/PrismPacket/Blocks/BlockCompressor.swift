/// `Prism-Encoding`: how the plaintext of a packet's blocks is compressed.
public enum PacketEncoding: String, Sendable, CaseIterable {
  /// RFC 1952. Every receiver takes it.
  case gzip
  /// RFC 8878, for receivers that announce it.
  case zstd
  /// As it is: for payloads that do not shrink.
  case none
}

/// One of the encodings, with its working memory. Not for two threads at once.
protocol BlockCompressor {
  /// - Parameter cuts: where parts begin that have little in common with what is before them.
  func pack(_ plain: [UInt8], cuts: [Int]) throws(PacketError) -> [UInt8]
  /// The unpacked size that `packed` declares. - Throws: `unpackFailed` if it is impossible.
  func unpackedBytes(_ packed: [UInt8]) throws(PacketError) -> Int
  /// - Throws: `unpackFailed` for anything but one whole packed block of that size.
  func unpack(_ packed: [UInt8]) throws(PacketError) -> [UInt8]
}

extension BlockCompressor {
  func pack(_ plain: [UInt8]) throws(PacketError) -> [UInt8] { try pack(plain, cuts: []) }
}

struct StoredCompressor: BlockCompressor {
  func pack(_ plain: [UInt8], cuts: [Int]) -> [UInt8] { plain }
  func unpackedBytes(_ packed: [UInt8]) -> Int { packed.count }
  func unpack(_ packed: [UInt8]) -> [UInt8] { packed }
}
