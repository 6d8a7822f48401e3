import PrismProtocol

/// Puts common information into rows.
struct CommonMerger {
  private var last: (range: Range<Int>, members: CommonMembers)?

  /// Appends the row with its common information to `result`: its own members first, and they win.
  /// - Throws: `tooLarge` if it is longer than a meta may be.
  mutating func append(_ row: MetaBlock.Row, in text: [UInt8], to result: inout [UInt8]) throws(PacketError) {
    let line = text[row.line]
    // A row that is not an object stays as it is: the reader of metas refuses it.
    guard let common = row.common, line.first == UInt8(ascii: "{"), line.last == UInt8(ascii: "}") else {
      result += line
      return
    }
    let start = result.count
    result += text[row.line.lowerBound..<row.line.upperBound - 1]
    let own = (row.line.lowerBound + 1)..<(row.line.upperBound - 1)
    let comma = result.count
    if text[own].contains(where: { $0 > UInt8(ascii: " ") }) { result.append(UInt8(ascii: ",")) }
    let shared = result.count
    members(common, in: text).appendMissing(to: &result, in: text.span, own)
    if result.count == shared { result.removeSubrange(comma...) }
    result.append(UInt8(ascii: "}"))
    guard result.count - start <= Limits.metaBytesMax else { throw .tooLarge }
  }

  private mutating func members(_ range: Range<Int>, in text: [UInt8]) -> CommonMembers {
    if let last, last.range == range { return last.members }
    let members = CommonMembers(text, range)
    last = (range, members)
    return members
  }
}
