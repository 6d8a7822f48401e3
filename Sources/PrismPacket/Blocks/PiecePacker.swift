import CZlib
import CZstd

/// Compresses in pieces. Not for two threads at once.
protocol PiecePacker: AnyObject {
  /// - Returns: what is ready of all input so far.
  /// - Parameter isLast: nothing follows; all of the rest is returned.
  func pack(_ input: [UInt8], isLast: Bool) throws(PacketError) -> [UInt8]
}

final class StoredPiecePacker: PiecePacker {
  func pack(_ input: [UInt8], isLast: Bool) -> [UInt8] { input }
}

/// One gzip member (RFC 1952) by zlib, level 6.
final class GzipPiecePacker: PiecePacker {
  private static let pieceBytes = 32 * 1024
  // At a place of its own: zlib keeps its address.
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

  init() throws(PacketError) {
    stream.initialize(to: z_stream())
    guard prism_deflate_gzip_init(stream, 6) == Z_OK else {
      stream.deallocate()
      throw .internal
    }
  }

  deinit {
    deflateEnd(stream)
    stream.deallocate()
  }

  func pack(_ input: [UInt8], isLast: Bool) throws(PacketError) -> [UInt8] {
    try input.withUnsafeBufferPointer { input throws(PacketError) in try pack(input, isLast: isLast) }
  }

  private func pack(_ input: UnsafeBufferPointer<UInt8>, isLast: Bool) throws(PacketError) -> [UInt8] {
    guard let inputCount = UInt32(exactly: input.count) else { throw .tooLarge }
    stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
    stream.pointee.avail_in = inputCount
    var result: [UInt8] = []
    while true {
      var code = Z_OK
      let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { output, count in
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = UInt32(output.count)
        code = deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
        count = output.count - Int(stream.pointee.avail_out)
      }
      result += piece
      // Z_BUF_ERROR: there was nothing to do.
      if code == Z_STREAM_END || code == Z_BUF_ERROR && !isLast { return result }
      guard code == Z_OK else { throw .internal }
      if !isLast, stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 { return result }
    }
  }
}

/// One zstd frame (RFC 8878), level 3, with a window that `ZstdPieceUnpacker` takes.
final class ZstdPiecePacker: PiecePacker {
  private static let level: Int32 = 3
  private let context: OpaquePointer

  init() throws(PacketError) {
    guard let context = ZSTD_createCCtx() else { throw .internal }
    self.context = context
    let settings = [
      ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Self.level),
      ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, ZstdPieceUnpacker.windowLogMax - 2),
      ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1),
    ]
    guard settings.allSatisfy({ ZSTD_isError($0) == 0 }) else { throw .internal }
  }

  deinit { ZSTD_freeCCtx(context) }

  func pack(_ input: [UInt8], isLast: Bool) throws(PacketError) -> [UInt8] {
    try input.withUnsafeBufferPointer { input throws(PacketError) in try pack(input, isLast: isLast) }
  }

  private func pack(_ input: UnsafeBufferPointer<UInt8>, isLast: Bool) throws(PacketError) -> [UInt8] {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    var result: [UInt8] = []
    while true {
      var rest = 0
      let piece = [UInt8](unsafeUninitializedCapacity: ZSTD_CStreamOutSize()) { output, count in
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        rest = ZSTD_compressStream2(context, &target, &source, isLast ? ZSTD_e_end : ZSTD_e_continue)
        count = target.pos
      }
      guard ZSTD_isError(rest) == 0 else { throw .internal }
      result += piece
      if isLast ? rest == 0 : source.pos == source.size { return result }
    }
  }
}

extension PacketEncoding {
  func piecePacker() throws(PacketError) -> any PiecePacker {
    switch self {
    case .gzip: try GzipPiecePacker()
    case .zstd: try ZstdPiecePacker()
    case .none: StoredPiecePacker()
    }
  }
}
