import CDeflate

/// Unpacks gzip members (RFC 1952) by libdeflate, each into a buffer of the size that its trailer names.
///
/// Holds the library's working memory, so one serves many blocks; not for two threads at once.
final class GzipUnpacker {
  /// The most that DEFLATE makes of one byte.
  private static let ratioMax = 1032
  /// Header and trailer.
  private static let memberBytesMin = 18

  private let decompressor: OpaquePointer

  /// - Throws: `internal` without memory.
  init() throws(PacketError) {
    guard let decompressor = libdeflate_alloc_decompressor() else { throw .internal }
    self.decompressor = decompressor
  }

  deinit { libdeflate_free_decompressor(decompressor) }

  /// The bytes that `member` unpacks to, as its trailer says; nothing is unpacked.
  /// - Throws: `unpackFailed` where no member of this length can become as large.
  static func unpackedBytes(_ member: [UInt8]) throws(PacketError) -> Int {
    guard member.count >= memberBytesMin else { throw .unpackFailed }
    let bytes = member.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    guard bytes <= member.count * ratioMax else { throw .unpackFailed }
    return bytes
  }

  /// - Throws: `unpackFailed` for anything that is not one whole member of the size that its trailer names.
  func unpack(_ member: [UInt8]) throws(PacketError) -> [UInt8] {
    let bytes = try Self.unpackedBytes(member)
    var isWhole = false
    let result = [UInt8](unsafeUninitializedCapacity: max(1, bytes)) { buffer, count in
      var read = 0
      let code = libdeflate_gzip_decompress_ex(
        decompressor, member, member.count, buffer.baseAddress, bytes, &read, nil)
      isWhole = code == LIBDEFLATE_SUCCESS && read == member.count
      count = isWhole ? bytes : 0
    }
    guard isWhole else { throw .unpackFailed }
    return result
  }
}
