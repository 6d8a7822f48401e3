import PrismProtocol

/// Writes the lines of a meta block with common information once: a line `{"$common":{…}}` holds the members that the
/// rows after it share, until the next such line (docs/packet.md, "Common information").
public struct CommonLineWriter: Sendable {
  static let head = Array(#"{"$common":{"#.utf8)
  static let tail = Array("}}".utf8)

  /// The lines so far, joined with a line feed.
  public private(set) var bytes: [UInt8] = []
  public private(set) var rowCount = 0
  private var common: [UInt8] = []

  public init() {}

  /// - Parameter row: one JSON object in one line, without the common members. Its first key is not `$common`, which
  ///   holds for every row of a store: it begins with `MONITOR_TYPE`.
  /// - Parameter common: members without their braces; empty: none.
  public mutating func append(_ row: [UInt8], common: [UInt8]) {
    precondition(!row.starts(with: Self.head), "a row would be read as common information")
    if common != self.common {
      startLine()
      bytes += Self.head + common + Self.tail
      self.common = common
    }
    startLine()
    bytes += row
    rowCount += 1
  }

  private mutating func startLine() { if !bytes.isEmpty { bytes.append(UInt8(ascii: "\n")) } }
}

/// The plaintext of a meta block: its rows, each with the common information that holds for it.
public struct MetaBlock: Sendable, Equatable {
  public struct Row: Sendable, Equatable {
    /// The row's line in `text`.
    public let line: Range<Int>
    /// The common members in `text`, without their braces; nil: there are none.
    public let common: Range<Int>?
  }

  public let text: [UInt8]
  public let rows: [Row]

  /// - Throws: `countMismatch` for more than `rowsMax` rows, `tooLarge` for a line longer than a meta may be,
  ///   `unpackFailed` for a `$common` line that is not one object with the one object `$common`.
  init(parsing text: [UInt8], rowsMax: Int) throws(PacketError) {
    var (rows, common): ([Row], Range<Int>?) = ([], nil)
    for line in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      if line.starts(with: CommonLineWriter.head) {
        common = try Self.members(ofCommon: line)
      } else {
        guard rows.count < rowsMax else { throw .countMismatch }
        guard line.count <= Limits.metaBytesMax else { throw .tooLarge }
        rows.append(Row(line: line.startIndex..<line.endIndex, common: common))
      }
    }
    (self.text, self.rows) = (text, rows)
  }

  private static func members(ofCommon line: ArraySlice<UInt8>) throws(PacketError) -> Range<Int>? {
    guard line.count <= Limits.metaBytesMax else { throw .tooLarge }
    guard let value = try? JSONValue(parsing: Array(line)), value.object?.count == 1,
      line.reversed().starts(with: CommonLineWriter.tail),
      let members = value["$common"]?.object
    else { throw .unpackFailed }
    let range = (line.startIndex + CommonLineWriter.head.count)..<(line.endIndex - CommonLineWriter.tail.count)
    return members.isEmpty ? nil : range
  }

  /// Each row with its common information: the row's own members first, and they win.
  /// - Throws: `tooLarge` for a row that is longer than a meta may be.
  public func merged() throws(PacketError) -> [[UInt8]] {
    var merger = CommonMerger()
    var result: [[UInt8]] = []
    result.reserveCapacity(rows.count)
    for row in rows { result.append(try merger.merge(row, in: text)) }
    return result
  }
}
