/// A stored row's id: its priority in the top bits, below it a sequence number that is unique in the database and never used
/// again. A report's payload row has the id of its meta row.
public struct RowID: Hashable, Comparable, Sendable {
  /// The low bits that hold the sequence number; the priority is above them.
  public static let sequenceBits = 48
  /// The row's key in its table.
  public let value: Int64

  public init(value: Int64) { self.value = value }

  public init(priority: Priority, sequence: Int64) {
    value = Int64(priority.rawValue) << Self.sequenceBits | sequence
  }

  /// The number of the row in the order of arrival.
  public var sequence: Int64 { value & (1 << Self.sequenceBits - 1) }
  /// The priority; nil if the bits name no priority.
  public var priority: Priority? { Priority(rawValue: Int(value >> Self.sequenceBits)) }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }

  /// Whether an id is of a row of the ring.
  public static func isKept(_ value: Int64) -> Bool { value >= keptBase }
  private static let keptBase = RowID(priority: .kept, sequence: 0).value

  /// Bytes of every report id that the daemon makes: 20 digits of the epoch, a dash, 16 of the row.
  public static let reportIDBytes = 37

  /// The report id of a row without one of its client: the epoch, a dash, and the row's id in 16 hexadecimal digits. It
  /// is unique over all devices, because `epoch` is. It needs no column and no index, because the row is found by it.
  /// It always has `reportIDBytes` bytes, so a meta's size is known before its row has an id.
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

  /// The part of `reportID` after the epoch: a dash and 16 digits.
  @inlinable public func appendReportIDSuffix(to bytes: inout [UInt8]) {
    var suffix = InlineArray<17, UInt8>(repeating: UInt8(ascii: "-"))
    for place in 1...16 {
      let digit = UInt8(truncatingIfNeeded: value >> Int64(64 - 4 * place)) & 15
      suffix[place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }
    suffix.span.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
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

/// The order in which rows of a namespace and kind leave: crashes, then realtime types, then the rest
/// (docs/delivery.md).
/// A row's priority is fixed when it is stored; it is the top bits of its id, so that the order of ids is the order of leaving.
public enum Priority: Int, Sendable, CaseIterable {
  case crash, realtime, rest
  /// Rows of the ring (`keep: ring`): they do not leave by themselves.
  case kept

  /// Those of rows that leave by themselves, in their order.
  public static let leaving: [Priority] = [.crash, .realtime, .rest]
}
