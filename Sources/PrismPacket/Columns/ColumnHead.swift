/// `Prism-Form`: how the meta block of a packet holds its rows (docs/packet.md, "Columns").
public enum PacketForm: String, Sendable, CaseIterable {
  /// Lines of JSON. Every receiver takes them; the header is absent.
  case rows
  /// Columns of values, for receivers that announce them.
  case columns
}

/// The head of a block of columns: what the columns make when they are read. A reader checks it before it unpacks.
public struct ColumnHead: Sendable, Equatable {
  /// The bytes of a head: four numbers of 32 bits, big-endian.
  static let byteCount = 16
  static let columnsMax = 4096
  /// The most words in all dictionaries of a block.
  static let wordsMax = 65_536

  /// Lines of the text: rows and common information.
  public var lines: Int
  /// Bytes of the text.
  public var textBytes: Int
  /// Columns of all shapes.
  public var columns: Int
  /// Words of all dictionaries.
  public var words: Int

  var bytes: [UInt8] {
    [lines, textBytes, columns, words].flatMap { number in
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
  }

  init(lines: Int, textBytes: Int, columns: Int, words: Int) {
    (self.lines, self.textBytes, self.columns, self.words) = (lines, textBytes, columns, words)
  }

  /// - Throws: `unpackFailed` if `block` has no whole head.
  init(parsing block: [UInt8]) throws(PacketError) {
    guard block.count >= Self.byteCount else { throw .unpackFailed }
    let numbers = (0..<4).map { index in block[4 * index..<4 * index + 4].reduce(0) { $0 << 8 | Int($1) } }
    self.init(lines: numbers[0], textBytes: numbers[1], columns: numbers[2], words: numbers[3])
  }

  /// Memory that reading takes beside the columns and the text.
  var workBytes: Int {
    // The lists grow in steps.
    2 * columns * (MemoryLayout<ColumnReader>.stride + 2 * MemoryLayout<ColumnBlock.Piece>.stride)
      + 2 * (words + lines) * MemoryLayout<Range<Int>>.stride + ColumnOutput.spareBytes
  }

  /// - Parameter rows: of the packet. Each has at most one line of common information before it.
  /// - Throws: `countMismatch` for more lines than the rows have, `tooLarge` over the limits.
  func check(rows: Int, _ limits: PacketLimits) throws(PacketError) {
    guard lines <= 2 * min(rows, limits.rowsMax) else { throw .countMismatch }
    guard textBytes <= limits.metaBlockBytesMax, columns <= Self.columnsMax, words <= Self.wordsMax else {
      throw .tooLarge
    }
  }
}
