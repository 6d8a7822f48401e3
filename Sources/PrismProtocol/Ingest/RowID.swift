/// A stored row's id: its lane in the top bits, below it a sequence number that is unique in the database and never used
/// again. A report's payload row has the id of its meta row.
public struct RowID: Hashable, Comparable, Sendable {
  public static let sequenceBits = 48
  public let value: Int64

  public init(value: Int64) { self.value = value }

  public init(lane: Lane, sequence: Int64) {
    value = Int64(lane.rawValue) << Self.sequenceBits | sequence
  }

  public var sequence: Int64 { value & (1 << Self.sequenceBits - 1) }
  public var lane: Lane? { Lane(rawValue: Int(value >> Self.sequenceBits)) }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }

  /// Bytes of every report id that the daemon makes: 20 digits of the epoch, a dash, 13 of the row.
  public static let reportIDBytes = 34

  /// The report id of a row whose client gave none: unique over all devices, because `epoch` is, and needing neither a
  /// column nor an index, because the row is found by it. Always `reportIDBytes` long, so that a meta's size is known
  /// before its row has an id.
  public func reportID(epoch: String) -> String {
    let digits = String(value, radix: 36)
    return epoch + "-" + String(repeating: "0", count: 13 - digits.count) + digits
  }

  /// The same as bytes, for one answer after another.
  public func appendReportID(epoch: [UInt8], to result: inout [UInt8]) {
    result.append(contentsOf: epoch)
    result.append(0x2D)
    let start = result.count
    result.append(contentsOf: repeatElement(0x30, count: 13))
    var (rest, index) = (UInt64(bitPattern: value), start + 12)
    while rest > 0, index >= start {
      let digit = UInt8(rest % 36)
      result[index] = digit < 10 ? 0x30 + digit : 0x61 - 10 + digit
      rest /= 36
      index -= 1
    }
  }

  /// The row of a report id that was made under `epoch`; nil for a client's own id or another database's.
  public init?(reportID: String, epoch: String) {
    guard reportID.utf8.count == Self.reportIDBytes, reportID.hasPrefix(epoch + "-"),
      let value = Int64(reportID.suffix(13), radix: 36), value >= 0
    else { return nil }
    self.value = value
    guard self.reportID(epoch: epoch) == reportID else { return nil }
  }
}
