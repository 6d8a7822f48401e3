/// Writes the lines of a meta block with common information once. A line `{"$common":{…}}` holds the members that the
/// rows after it share, until the next such line (docs/packet.md, "Common information").
public struct CommonLineWriter: Sendable {
  private static let head = Array(#"{"$common":{"#.utf8)
  private static let tail = Array("}}".utf8)

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
