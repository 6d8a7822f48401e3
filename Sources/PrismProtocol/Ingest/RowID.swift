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

  /// Bytes of every report id that the daemon makes: 20 digits of the epoch, a dash, 16 of the row.
  public static let reportIDBytes = 37

  /// The report id of a row whose client gave none: the epoch, a dash, and the row's id in 16 hexadecimal digits.
  /// Unique over all devices, because `epoch` is, and needing neither a column nor an index, because the row is found by
  /// it. Always `reportIDBytes` long, so that a meta's size is known before its row has an id.
  public func reportID(epoch: String) -> String {
    var bytes: [UInt8] = []
    appendReportID(epoch: Array(epoch.utf8), to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The same as bytes, for one answer after another.
  @inlinable public func appendReportID(epoch: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(contentsOf: epoch)
    appendReportIDSuffix(to: &bytes)
  }

  /// What follows the epoch in `reportID`: a dash and 16 digits.
  @inlinable public func appendReportIDSuffix(to bytes: inout [UInt8]) {
    bytes.append(addingCapacity: 17) { place in
      place.append(0x2D)
      for shift in stride(from: 60, through: 0, by: -4) {
        let digit = UInt8(truncatingIfNeeded: value >> Int64(shift)) & 15
        place.append(digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
      }
    }
  }

  /// The row of a report id that was made under `epoch`; nil for a client's own id or another database's.
  public init?(reportID: String, epoch: String) {
    guard reportID.utf8.count == Self.reportIDBytes, reportID.hasPrefix(epoch + "-"),
      let value = Int64(reportID.suffix(16), radix: 16), value >= 0
    else { return nil }
    self.value = value
    guard self.reportID(epoch: epoch) == reportID else { return nil }
  }
}
