import PrismBase
import PrismProtocol

/// Writes the lines of a meta block with common information once. A line `{"$common":{…}}` holds the members that the
/// rows after it share, until the next such line (docs/packet.md, "Common information").
public struct CommonLineWriter: Sendable {
  static let head = Array(#"{"$common":{"#.utf8)
  static let tail = Array("}}".utf8)

  /// The lines so far, joined with a line feed.
  public private(set) var bytes: [UInt8] = []
  /// The rows written so far, without `$common` lines.
  public private(set) var rowCount = 0
  private var common: [UInt8] = []

  public init() {}

  /// - Parameter row: one JSON object in one line, without the common members. Its first key is not `$common`, which
  ///   holds for every row of a store: it begins with `MONITOR_TYPE`.
  /// - Parameter common: members without their braces; empty without common information.
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
  /// A row: its range in the text, and its common members.
  public struct Row: Sendable, Equatable {
    /// The row's line in `text`.
    public let line: Range<Int>
    /// The common members in `text`, without their braces; nil if there are no common members.
    public let common: Range<Int>?
  }

  /// The unpacked block.
  public let text: [UInt8]
  /// Its rows in order.
  public let rows: [Row]

  /// - Throws: `countMismatch` for more than `rowsMax` rows, `tooLarge` for a line longer than a meta may be.
  ///   `unpackFailed` for a `$common` line that is not one object with the one object `$common`.
  public init(parsing text: [UInt8], rowsMax: Int) throws(PacketError) {
    var (rows, common): ([Row], Range<Int>?) = ([], nil)
    for range in LineRanges(text) {
      let line = text[range]
      if line.starts(with: CommonLineWriter.head) {
        common = try Self.members(ofCommon: line)
      } else {
        guard rows.count < rowsMax else { throw .countMismatch }
        guard line.count <= Limits.metaBytesMax else { throw .tooLarge }
        rows.append(Row(line: range, common: common))
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

  /// No less than the size of what `mergedText` returns. Nothing is merged.
  public var mergedBytesMax: Int { rows.reduce(0) { $0 + $1.line.count + ($1.common?.count ?? 0) + 2 } }

  /// `merged`, joined with a line feed.
  public func mergedText() throws(PacketError) -> [UInt8] {
    // Without a line of common information the rows are the text.
    if rows.reduce(rows.count - 1, { $0 + $1.line.count }) == text.count { return text }
    var merger = CommonMerger()
    var result: [UInt8] = []
    result.reserveCapacity(mergedBytesMax)
    for (index, row) in rows.enumerated() {
      if index > 0 { result.append(UInt8(ascii: "\n")) }
      try merger.append(row, in: text, to: &result)
    }
    return result
  }

  /// Each row with its common information: the row's own members first, and they win.
  /// - Throws: `tooLarge` for a row that is longer than a meta may be.
  public func merged() throws(PacketError) -> [[UInt8]] {
    var merger = CommonMerger()
    var result: [[UInt8]] = []
    result.reserveCapacity(rows.count)
    for row in rows {
      var merged: [UInt8] = []
      try merger.append(row, in: text, to: &merged)
      result.append(merged)
    }
    return result
  }
}
