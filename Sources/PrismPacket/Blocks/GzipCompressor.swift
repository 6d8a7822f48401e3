import CDeflate

/// How hard gzip tries.
public enum Compression: Sendable, Equatable {
  /// Where traffic costs nothing: 2.5 times as fast, a fifth more bytes (libdeflate's level 1).
  case fast
  /// Where it costs: libdeflate's level 6, 2.2 times as fast as zlib's and 10 % smaller.
  case small
  /// Not at all: a gzip member that holds its content as it is.
  case stored

  fileprivate var level: Int32 {
    switch self {
    case .stored: 0
    case .fast: 1
    case .small: 6
    }
  }
}

/// Gzip (RFC 1952) by libdeflate; mtime 0, no name. A member is unpacked into a buffer of the size that its trailer names.
///
/// Holds the library's working memory (about 1 MiB) and its output, so one serves many packets; not for two threads at
/// once.
final class GzipCompressor: BlockCompressor {
  /// A larger output is given back after use.
  private static let keptBytesMax = 256 * 1024
  /// The most that DEFLATE makes of one byte.
  private static let ratioMax = 1032
  /// Header and trailer.
  private static let memberBytesMin = 18

  private let compressor: OpaquePointer
  private let decompressor: OpaquePointer
  private var output = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)

  /// - Throws: `internal` without memory.
  init(_ compression: Compression = .small) throws(PacketError) {
    guard let compressor = libdeflate_alloc_compressor(compression.level) else { throw .internal }
    guard let decompressor = libdeflate_alloc_decompressor() else {
      libdeflate_free_compressor(compressor)
      throw .internal
    }
    (self.compressor, self.decompressor) = (compressor, decompressor)
  }

  deinit {
    libdeflate_free_compressor(compressor)
    libdeflate_free_decompressor(decompressor)
    output.deallocate()
  }

  /// DEFLATE finds parts that have little in common by itself.
  func pack(_ plain: [UInt8], cuts: [Int]) throws(PacketError) -> [UInt8] { try compress(plain) }

  /// - Throws: `internal` when the library fails, which it documents for too small a buffer only.
  func compress(_ bytes: [UInt8]) throws(PacketError) -> [UInt8] {
    let bound = libdeflate_gzip_compress_bound(compressor, bytes.count)
    if output.count < bound { resize(bound) }
    defer { if output.count > Self.keptBytesMax { resize(4096) } }
    let count = libdeflate_gzip_compress(compressor, bytes, bytes.count, output.baseAddress, output.count)
    guard count > 0 else { throw .internal }
    return [UInt8](output[..<count])
  }

  private func resize(_ count: Int) {
    output.deallocate()
    output = .allocate(byteCount: count, alignment: 16)
  }

  /// - Throws: `unpackFailed` where no member of this length can become as large as its trailer says.
  func unpackedBytes(_ member: [UInt8]) throws(PacketError) -> Int {
    guard member.count >= Self.memberBytesMin else { throw .unpackFailed }
    let bytes = member.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    guard bytes <= member.count * Self.ratioMax else { throw .unpackFailed }
    return bytes
  }

  func unpack(_ member: [UInt8]) throws(PacketError) -> [UInt8] {
    let bytes = try unpackedBytes(member)
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

/// Gzip for what is no packet (RFC 1952).
package enum Gzip {
  /// - Throws: `internal` without memory.
  package static func member(of bytes: [UInt8]) throws(PacketError) -> [UInt8] { try GzipCompressor().compress(bytes) }
}
