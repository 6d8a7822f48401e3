import PrismProtocol

/// Packs lines as they rest in a store: as columns from 50 lines of few shapes on, else as rows, both with zstd.
///
/// Holds the library's contexts, so one serves many texts; not for two threads at once.
public final class RestPacker {
  /// The first byte of what is packed.
  private enum Form: UInt8 {
    case rows = 0
    case columns = 1
  }

  private let compressor: ZstdCompressor

  /// - Throws: `internal` without memory.
  public init() throws(PacketError) { compressor = try ZstdCompressor() }

  /// - Parameter text: lines, joined with a line feed; not empty.
  public func pack(_ text: [UInt8]) throws(PacketError) -> [UInt8] {
    guard let (head, bytes, cuts) = ColumnPacker.pack(text) else {
      return [Form.rows.rawValue] + (try compressor.pack(text))
    }
    return [Form.columns.rawValue] + head.bytes + (try compressor.pack(bytes, cuts: cuts))
  }

  /// - Parameter limits: of the lines and their bytes.
  /// - Parameter keys: of members that are wanted; others may be left out, but for those of common information. nil: all are.
  /// - Throws: `unpackFailed` for anything but what `pack` made, `countMismatch` and `tooLarge` over the limits.
  public func unpack(
    _ packed: ArraySlice<UInt8>, _ limits: PacketLimits, keys: [[UInt8]]? = nil
  ) throws(PacketError) -> [UInt8] {
    guard let form = packed.first.flatMap({ Form(rawValue: $0) }) else { throw .unpackFailed }
    var bytes = Array(packed.dropFirst())
    guard form == .columns else { return try unpack(bytes, limits) }
    let head = try ColumnHead(parsing: bytes)
    try head.check(rows: limits.rowsMax, limits)
    bytes.removeFirst(ColumnHead.byteCount)
    return try ColumnBlock.text(try unpack(bytes, limits), head, keys: keys)
  }

  private func unpack(_ bytes: [UInt8], _ limits: PacketLimits) throws(PacketError) -> [UInt8] {
    guard try compressor.unpackedBytes(bytes) <= limits.metaBlockBytesMax else { throw .tooLarge }
    return try compressor.unpack(bytes)
  }
}
