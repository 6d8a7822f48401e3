/// A line of the answer to a question for the server's changes (docs/records.md, "The answer to a question").
public enum DownLine: Equatable, Sendable {
  case head(DownHead)
  case operation(DownOperation)
  case record(DownRecord)

  /// Bytes of a line at most, without its line feed.
  public static let bytesMax = Limits.lineBytesMax

  /// The line, without a line feed.
  public var bytes: [UInt8] {
    switch self {
    case .head(let head): head.line
    case .operation(let operation): operation.line
    case .record(let record): record.line
    }
  }

  /// Reads a line. A head has `full`, an operation `op`; members that this version does not know are ignored.
  /// - Returns: nil if it is not one of the three, or longer than `bytesMax`.
  public init?(_ line: [UInt8]) {
    guard let members = DownMembers(line) else { return nil }
    if members.has(.full) {
      guard let head = DownHead(members) else { return nil }
      self = .head(head)
    } else if members.has(.op) {
      guard let operation = DownOperation(members) else { return nil }
      self = .operation(operation)
    } else {
      guard let record = DownRecord(members) else { return nil }
      self = .record(record)
    }
  }
}
