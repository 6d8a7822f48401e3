import CZlib
import CZstd

/// Compresses in pieces. Not for two threads at once.
protocol PiecePacker: AnyObject {
  /// - Returns: what is ready of all input so far.
  /// - Parameter isLast: nothing follows; all of the rest is returned.
  func pack(_ input: UnsafeBufferPointer<UInt8>, isLast: Bool) throws(PacketError) -> [UInt8]
}

extension PiecePacker {
  func pack(_ input: [UInt8], isLast: Bool) throws(PacketError) -> [UInt8] {
    try input.withUnsafeBufferPointer { input throws(PacketError) in try pack(input, isLast: isLast) }
  }
}

final class StoredPiecePacker: PiecePacker {
  func pack(_ input: UnsafeBufferPointer<UInt8>, isLast: Bool) -> [UInt8] { Array(input) }
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

  func pack(_ input: UnsafeBufferPointer<UInt8>, isLast: Bool) throws(PacketError) -> [UInt8] {
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

  func pack(_ input: UnsafeBufferPointer<UInt8>, isLast: Bool) throws(PacketError) -> [UInt8] {
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

/// Unpacks in pieces of at most `pieceBytesMax`: a bomb costs no memory. Not for two threads at once.
protocol PieceUnpacker: AnyObject {
  /// The content has ended; no input may follow.
  var isEnd: Bool { get }
  /// Unpacks a piece of `input` from `offset`, which moves behind the bytes that were used.
  /// - Returns: empty: more input is needed.
  /// - Throws: `unpackFailed` for anything that is not packed content.
  func unpack(_ input: [UInt8], from offset: inout Int) throws(PacketError) -> [UInt8]
}

extension PieceUnpacker {
  static var pieceBytesMax: Int { 64 * 1024 }
}

/// Content that is not packed: it never says that it has ended.
final class StoredPieceUnpacker: PieceUnpacker {
  let isEnd = false

  func unpack(_ input: [UInt8], from offset: inout Int) -> [UInt8] {
    let piece = input[offset...].prefix(Self.pieceBytesMax)
    offset += piece.count
    return Array(piece)
  }
}

/// One gzip member (RFC 1952) by zlib.
final class GzipPieceUnpacker: PieceUnpacker {
  private(set) var isEnd = false
  // At a place of its own: zlib keeps its address.
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

  init() throws(PacketError) {
    stream.initialize(to: z_stream())
    guard prism_inflate_gzip_init(stream) == Z_OK else {
      stream.deallocate()
      throw .internal
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
  }

  func unpack(_ input: [UInt8], from offset: inout Int) throws(PacketError) -> [UInt8] {
    guard let count = UInt32(exactly: input.count - offset) else { throw .tooLarge }
    var (code, rest) = (Z_OK, 0)
    let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytesMax) { output, written in
      input.withUnsafeBufferPointer { input in
        stream.pointee.next_in = input.baseAddress.map { UnsafeMutablePointer(mutating: $0 + offset) }
        stream.pointee.avail_in = count
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = UInt32(Self.pieceBytesMax)
        code = inflate(stream, Z_NO_FLUSH)
        rest = Int(stream.pointee.avail_in)
        written = Self.pieceBytesMax - Int(stream.pointee.avail_out)
      }
    }
    // Z_BUF_ERROR: there was nothing to do with as much input.
    guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else { throw .unpackFailed }
    (offset, isEnd) = (input.count - rest, code == Z_STREAM_END)
    return piece
  }
}

/// One zstd frame (RFC 8878).
final class ZstdPieceUnpacker: PieceUnpacker {
  /// 8 MiB: a frame with a larger window is refused, because it would take that much memory.
  static let windowLogMax: Int32 = 23

  private(set) var isEnd = false
  private let context: OpaquePointer

  init() throws(PacketError) {
    guard let context = ZSTD_createDCtx() else { throw .internal }
    self.context = context
    guard ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.windowLogMax)) == 0 else {
      throw .internal
    }
  }

  deinit { ZSTD_freeDCtx(context) }

  func unpack(_ input: [UInt8], from offset: inout Int) throws(PacketError) -> [UInt8] {
    var (rest, used) = (0, offset)
    let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytesMax) { output, written in
      input.withUnsafeBufferPointer { input in
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: used)
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: Self.pieceBytesMax, pos: 0)
        rest = ZSTD_decompressStream(context, &target, &source)
        (used, written) = (source.pos, target.pos)
      }
    }
    guard ZSTD_isError(rest) == 0 else { throw .unpackFailed }
    (offset, isEnd) = (used, rest == 0)
    return piece
  }
}

extension PacketEncoding {
  func pieceUnpacker() throws(PacketError) -> any PieceUnpacker {
    switch self {
    case .gzip: try GzipPieceUnpacker()
    case .zstd: try ZstdPieceUnpacker()
    case .none: StoredPieceUnpacker()
    }
  }
}
