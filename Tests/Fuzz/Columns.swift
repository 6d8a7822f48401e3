import PrismProtocol

@testable import PrismPacket

#if FUZZ
  import FuzzSupport
#endif

/// Columns as the collector reads them, and as the daemon writes them.
///
/// The first byte says how. Even: the rest is a head and the unpacked columns. Odd: the rest is lines, which are repeated,
/// packed and read again.
#if FUZZ
  @main
#endif
enum ColumnsHarness: FuzzHarness {
  private static let limits = PacketLimits(metaBlockBytesMax: 1 << 16)

  static func run(_ input: ArraySlice<UInt8>) {
    var rest = input
    do throws(PacketError) {
      if rest.takeByte() & 1 == 0 { try read(Array(rest)) } else { try write(rest) }
    } catch { return }
  }

  private static func read(_ block: [UInt8]) throws(PacketError) {
    let head = try ColumnHead(parsing: block)
    try head.check(rows: 10_000, limits)
    let text = try ColumnBlock.text(Array(block.dropFirst(ColumnHead.byteCount)), head)
    precondition(text.count == head.textBytes, "more or less came than the head says")
  }

  private static func write(_ lines: ArraySlice<UInt8>) throws(PacketError) {
    let repeats = max(1, min(ShapeTable.linesMin, 65_536 / max(1, lines.count)))
    let text = Array([ArraySlice<UInt8>](repeating: lines, count: repeats).joined(separator: [UInt8(ascii: "\n")]))
    guard let (head, bytes, _) = ColumnPacker.pack(text) else { return }
    precondition(head.columns <= ColumnHead.columnsMax && head.words <= ColumnHead.wordsMax, "no reader takes it")
    let back = try? ColumnBlock.text(bytes, head)
    precondition(back == text, "other lines come back")
  }
}
