import CZstd

/// zstd (RFC 8878), level 1, with or without a dictionary: one frame that says its content's size.
///
/// Holds the library's contexts, so one serves many blocks; not for two threads at once.
final class ZstdCompressor: BlockCompressor {
  private static let level: Int32 = 1
  /// RFC 8878, section 3.1.1: the first bytes of a frame.
  private static let magic = withUnsafeBytes(of: ZSTD_MAGICNUMBER.littleEndian) { Array($0) }

  /// Of an additional block, whether it shrinks or not.
  private static let blockHeadBytes = 16

  private let compressing: OpaquePointer
  private let unpacking: OpaquePointer
  private let dictionary: (id: UInt32, compressing: OpaquePointer, unpacking: OpaquePointer)?

  /// - Throws: `internal` without memory.
  init(dictionary: CompressionDictionary? = nil) throws(PacketError) {
    guard let compressing = ZSTD_createCCtx() else { throw .internal }
    guard let unpacking = ZSTD_createDCtx() else {
      ZSTD_freeCCtx(compressing)
      throw .internal
    }
    (self.compressing, self.unpacking) = (compressing, unpacking)
    self.dictionary = dictionary.flatMap { dictionary in
      guard let forPacking = ZSTD_createCDict(dictionary.bytes, dictionary.bytes.count, Self.level),
        let forUnpacking = ZSTD_createDDict(dictionary.bytes, dictionary.bytes.count)
      else { return nil }
      return (dictionary.id, forPacking, forUnpacking)
    }
    guard (dictionary == nil) == (self.dictionary == nil), configure() else { throw .internal }
  }

  deinit {
    ZSTD_freeCCtx(compressing)
    ZSTD_freeDCtx(unpacking)
    if let dictionary {
      ZSTD_freeCDict(dictionary.compressing)
      ZSTD_freeDDict(dictionary.unpacking)
    }
  }

  private func configure() -> Bool {
    var results = [ZSTD_CCtx_setParameter(compressing, ZSTD_c_compressionLevel, Self.level)]
    if let dictionary {
      results.append(ZSTD_CCtx_refCDict(compressing, dictionary.compressing))
      results.append(ZSTD_DCtx_refDDict(unpacking, dictionary.unpacking))
    }
    return results.allSatisfy { ZSTD_isError($0) == 0 }
  }

  /// A part is a block of its own, with its own statistics.
  func pack(_ plain: [UInt8], cuts: [Int]) throws(PacketError) -> [UInt8] {
    var failed = false
    let capacity = ZSTD_compressBound(plain.count) + Self.blockHeadBytes * cuts.count
    let packed = [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
      let result =
        cuts.isEmpty
        ? ZSTD_compress2(compressing, output.baseAddress, output.count, plain, plain.count)
        : pack(plain, cuts, to: output)
      failed = ZSTD_isError(result) != 0
      count = failed ? 0 : result
    }
    if failed { throw .internal }
    return packed
  }

  /// - Returns: the bytes of the frame, or the code of an error.
  private func pack(_ plain: [UInt8], _ cuts: [Int], to buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
    plain.withUnsafeBytes { plain in
      var output = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
      var input = ZSTD_inBuffer(src: plain.baseAddress, size: 0, pos: 0)
      var result = ZSTD_CCtx_reset(compressing, ZSTD_reset_session_only)
      if ZSTD_isError(result) == 0 { result = ZSTD_CCtx_setPledgedSrcSize(compressing, UInt64(plain.count)) }
      for end in cuts + [plain.count] where ZSTD_isError(result) == 0 {
        input.size = end
        result = ZSTD_compressStream2(compressing, &output, &input, end == plain.count ? ZSTD_e_end : ZSTD_e_flush)
        // There is room for all: what is not written is an error.
        if ZSTD_isError(result) == 0, result > 0 { return Int(bitPattern: UInt(bitPattern: -1)) }
      }
      return ZSTD_isError(result) == 0 ? output.pos : result
    }
  }

  /// - Throws: `unpackFailed` for a frame of another dictionary, one that does not declare its content's size, and
  ///   anything but one frame. A skippable frame does not count as one.
  func unpackedBytes(_ packed: [UInt8]) throws(PacketError) -> Int {
    guard packed.starts(with: Self.magic),
      ZSTD_getDictID_fromFrame(packed, packed.count) == dictionary?.id ?? 0,
      ZSTD_findFrameCompressedSize(packed, packed.count) == packed.count,
      // Unknown and unreadable sizes are the two largest numbers.
      let bytes = Int(exactly: ZSTD_getFrameContentSize(packed, packed.count))
    else { throw .unpackFailed }
    return bytes
  }

  func unpack(_ packed: [UInt8]) throws(PacketError) -> [UInt8] {
    let bytes = try unpackedBytes(packed)
    var isWhole = false
    let result = [UInt8](unsafeUninitializedCapacity: max(1, bytes)) { output, count in
      isWhole = ZSTD_decompressDCtx(unpacking, output.baseAddress, bytes, packed, packed.count) == bytes
      count = isWhole ? bytes : 0
    }
    guard isWhole else { throw .unpackFailed }
    return result
  }
}
