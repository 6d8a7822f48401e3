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
    text[range].starts(with: PackedLines.commonHead)
  }

  private static func isObject(_ text: [UInt8], _ range: Range<Int>) -> Bool {
    !range.isEmpty && text[range.lowerBound] == UInt8(ascii: "{") && text[range.upperBound - 1] == UInt8(ascii: "}")
  }

  private static func hasMembers(_ line: ArraySlice<UInt8>, _ cache: CommonCache) throws(PacketError) -> Bool {
    if cache.knows(line) { return true }
    guard line.count <= Limits.metaBytesMax else { throw .tooLarge }
    guard let value = try? JSONValue(parsing: Array(line)), value.object?.count == 1,
      line.reversed().starts(with: PackedLines.commonTail), let members = value["$common"]?.object
    else { throw .unpackFailed }
    return !members.isEmpty
  }

  /// The common information of a line that a row names.
  /// - Parameter cache: knows it from now on.
  public func common(_ line: Range<Int>, _ cache: CommonCache) throws(PacketError) -> CommonInformation {
    if let known = cache.common(of: text[line]) { return known }
    let range = (line.lowerBound + PackedLines.commonHead.count)..<(line.upperBound - PackedLines.commonTail.count)
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
