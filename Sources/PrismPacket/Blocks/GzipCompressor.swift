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

/// Gzip (RFC 1952) by libdeflate; mtime 0, no name.
///
/// Holds the library's working memory (about 1 MiB) and its output, so one serves many packets; not for two threads at
/// once.
final class GzipCompressor {
  /// A larger output is given back after use.
  private static let keptBytesMax = 256 * 1024

  private let compressor: OpaquePointer
  private var output = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)

  /// - Throws: `internal` without memory.
  init(_ compression: Compression = .small) throws(PacketError) {
    guard let compressor = libdeflate_alloc_compressor(compression.level) else { throw .internal }
    self.compressor = compressor
  }

  deinit {
    libdeflate_free_compressor(compressor)
    output.deallocate()
  }

  /// - Parameter body: gets the packed bytes, which are good until it returns.
  /// - Throws: `internal` when the library fails, which it documents for too small a buffer only.
  func compress<Result>(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(PacketError) -> Result
  ) throws(PacketError) -> Result {
    reserve(libdeflate_gzip_compress_bound(compressor, bytes.count))
    defer { if output.count > Self.keptBytesMax { resize(4096) } }
    let count = libdeflate_gzip_compress(compressor, bytes, bytes.count, output.baseAddress, output.count)
    guard count > 0 else { throw .internal }
    return try body(UnsafeRawBufferPointer(rebasing: output[..<count]))
  }

  func compress(_ bytes: [UInt8]) throws(PacketError) -> [UInt8] { try compress(bytes) { [UInt8]($0) } }

  private func reserve(_ count: Int) { if output.count < count { resize(count) } }

  private func resize(_ count: Int) {
    output.deallocate()
    output = .allocate(byteCount: count, alignment: 16)
  }
}

/// Gzip for what is no packet (RFC 1952).
package enum Gzip {
  /// - Throws: `internal` without memory.
  package static func member(of bytes: [UInt8]) throws(PacketError) -> [UInt8] { try GzipCompressor().compress(bytes) }
}
