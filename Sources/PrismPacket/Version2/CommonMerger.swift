import PrismProtocol

/// Puts common information into rows, and takes a `$common` line apart once for all rows that share it.
struct CommonMerger {
  private var last: (range: Range<Int>, members: MetaMembers)?

  /// - Throws: `tooLarge` if the result is longer than a meta may be.
  mutating func merge(_ row: MetaBlock.Row, in text: [UInt8]) throws(PacketError) -> [UInt8] {
    let line = text[row.line]
    // A row that is not an object stays as it is: the reader of metas refuses it.
    guard let common = row.common, line.first == UInt8(ascii: "{"), line.last == UInt8(ascii: "}") else {
      return Array(line)
    }
    let members = self.members(common, in: text)
    let own = (row.line.lowerBound + 1)..<(row.line.upperBound - 1)
    let keys = Set(MetaMembers(text.span, own).members.map(\.key))
    let shared = members.joined(text.span) { !keys.contains($0) }
    guard !shared.isEmpty else { return Array(line) }
    var result = Array(line.dropLast())
    if !keys.isEmpty { result.append(UInt8(ascii: ",")) }
    result += shared
    result.append(UInt8(ascii: "}"))
    guard result.count <= Limits.metaBytesMax else { throw .tooLarge }
    return result
  }

  private mutating func members(_ range: Range<Int>, in text: [UInt8]) -> MetaMembers {
    if let last, last.range == range { return last.members }
    let members = MetaMembers(text.span, range)
    last = (range, members)
    return members
  }
}
