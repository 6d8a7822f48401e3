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
  /// - Throws: `unpackFailed` for anything but what `pack` made, `countMismatch` and `tooLarge` over the limits.
  public func unpack(_ packed: ArraySlice<UInt8>, _ limits: PacketLimits) throws(PacketError) -> [UInt8] {
    let (head, bytes) = try opened(packed, limits)
    return if let head { try ColumnBlock.text(bytes, head) } else { bytes }
  }

  /// Reads of the lines only what is asked for. - Parameter read: gets lines that are there as long as it runs.
  /// - Throws: as `unpack`, and what `read` throws.
  public func read<Result>(
    _ packed: ArraySlice<UInt8>, _ limits: PacketLimits, _ read: (PackedLines) throws -> Result
  ) throws -> Result {
    let (head, bytes) = try opened(packed, limits)
    return try bytes.withUnsafeBufferPointer { try read(PackedLines($0, head)) }
  }

  /// - Returns: the head and the columns, or no head and the lines.
  private func opened(
    _ packed: ArraySlice<UInt8>, _ limits: PacketLimits
  ) throws(PacketError) -> (ColumnHead?, [UInt8]) {
    guard let form = packed.first.flatMap({ Form(rawValue: $0) }) else { throw .unpackFailed }
    guard form == .columns else { return (nil, try unpack(Array(packed.dropFirst()), limits)) }
    let head = try ColumnHead(parsing: Array(packed.dropFirst().prefix(ColumnHead.byteCount)))
    try head.check(rows: limits.rowsMax, limits)
    return (head, try unpack(Array(packed.dropFirst(1 + ColumnHead.byteCount)), limits))
  }

  private func unpack(_ bytes: [UInt8], _ limits: PacketLimits) throws(PacketError) -> [UInt8] {
    guard try compressor.unpackedBytes(bytes) <= limits.metaBlockBytesMax else { throw .tooLarge }
    return try compressor.unpack(bytes)
  }
}
