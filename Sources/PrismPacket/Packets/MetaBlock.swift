import PrismBase
import PrismProtocol

/// The plaintext of a meta block: its rows, each with the common information that holds for it.
public struct MetaBlock: Sendable, Equatable {
  /// A row: its range in the text, and its common members.
  public struct Row: Sendable, Equatable {
    /// The row's line in `text`.
    public let line: Range<Int>
    /// The line of its common information in `text`; nil: there is no such line, or the row is no object and stays as it is.
    public let common: Range<Int>?
  }

  /// The unpacked block.
  public let text: [UInt8]
  /// Its rows in order.
  public let rows: [Row]

  /// - Parameter cache: knows the common information of other blocks.
  /// - Throws: `countMismatch` for more than `rowsMax` rows, `tooLarge` for a line longer than a meta may be.
  ///   `unpackFailed` for a `$common` line that is not one object with the one object `$common`.
  public init(parsing text: [UInt8], rowsMax: Int, cache: CommonCache = CommonCache()) throws(PacketError) {
    var (rows, common): ([Row], Range<Int>?) = ([], nil)
    for range in LineRanges(text) {
      if Self.isCommon(text, range) {
        common = try Self.hasMembers(text[range], cache) ? range : nil
      } else {
        guard rows.count < rowsMax else { throw .countMismatch }
        guard range.count <= Limits.metaBytesMax else { throw .tooLarge }
        rows.append(Row(line: range, common: Self.isObject(text, range) ? common : nil))
      }
    }
    (self.text, self.rows) = (text, rows)
  }

  private static func isCommon(_ text: [UInt8], _ range: Range<Int>) -> Bool {
    text[range].starts(with: CommonLineWriter.head)
  }

  private static func isObject(_ text: [UInt8], _ range: Range<Int>) -> Bool {
    !range.isEmpty && text[range.lowerBound] == UInt8(ascii: "{") && text[range.upperBound - 1] == UInt8(ascii: "}")
  }

  private static func hasMembers(_ line: ArraySlice<UInt8>, _ cache: CommonCache) throws(PacketError) -> Bool {
    if cache.knows(line) { return true }
    guard line.count <= Limits.metaBytesMax else { throw .tooLarge }
    guard let value = try? JSONValue(parsing: Array(line)), value.object?.count == 1,
      line.reversed().starts(with: CommonLineWriter.tail),
      let members = value["$common"]?.object
    else { throw .unpackFailed }
    return !members.isEmpty
  }

  /// The common information of a line that a row names.
  /// - Parameter cache: knows it from now on.
  public func common(_ line: Range<Int>, _ cache: CommonCache) throws(PacketError) -> CommonInformation {
    if let known = cache.common(of: text[line]) { return known }
    let range = (line.lowerBound + CommonLineWriter.head.count)..<(line.upperBound - CommonLineWriter.tail.count)
    let common = try CommonInformation(text, range)
    cache.note(common, of: text[line])
    return common
  }

  /// Each row with its common information: the row's own members first, and they win.
  /// - Throws: `tooLarge` for a row that is longer than a meta may be.
  public func merged() throws(PacketError) -> [[UInt8]] {
    let cache = CommonCache()
    var last: (line: Range<Int>, common: CommonInformation)?
    var result: [[UInt8]] = []
    result.reserveCapacity(rows.count)
    for row in rows {
      guard let line = row.common else {
        result.append(Array(text[row.line]))
        continue
      }
      let common = if let last, last.line == line { last.common } else { try common(line, cache) }
      last = (line, common)
      var meta: [UInt8] = []
      try common.append(row.line, of: text, to: &meta)
      result.append(meta)
    }
    return result
  }
}

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
