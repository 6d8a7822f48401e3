/// Why an answer is not one to the question that was asked.
public enum DownFault: String, Error, Sendable, CaseIterable {
  /// A line can't be read, or may not be in its place.
  case line
  /// Operations came where all records were asked for.
  case notFull
  /// An operation is of another table.
  case table
  /// The numbers of operations do not ascend from the one that was asked for.
  case order
  /// There are more or fewer lines than the head says, or more operations than an answer may have.
  case count

  /// For the log and `prismctl`.
  public var message: String {
    switch self {
    case .line: "the answer has a line that is no change of a record"
    case .notFull: "the answer has operations, but all records were asked for"
    case .table: "the answer has an operation of another table"
    case .order: "the answer's operations are not in their order, or are older than those that are here"
    case .count: "the answer has more or fewer lines than it says"
    }
  }
}

/// Reads the lines of one answer in their order, and refuses what can't be the answer to its question. A value that knows no
/// file and no network.
public struct DownReading: Sendable {
  private let table: RecordTableName
  private let after: Int64?
  private var lines = 0
  /// The number of the newest operation so far, or of the head.
  private var last: Int64
  /// The first line, if it is a head.
  public private(set) var head: DownHead?

  /// - Parameter after: as in the question; nil: all records were asked for.
  public init(table: RecordTableName, after: Int64?) {
    (self.table, self.after) = (table, after)
    last = after ?? 0
  }

  /// Judges the next line. - Throws: if an honest server would not send it there.
  public mutating func read(_ line: [UInt8]) throws(DownFault) -> DownLine {
    guard let read = DownLine(line) else { throw .line }
    switch read {
    case .head(let head):
      guard lines == 0, self.head == nil else { throw .line }
      guard head.isFull || after != nil else { throw .notFull }
      guard head.isFull || head.sequence >= last else { throw .order }
      self.head = head
      return read
    case .operation(let operation):
      guard head?.isFull != true else { throw .line }
      guard after != nil else { throw .notFull }
      guard operation.table == table else { throw .table }
      guard operation.sequence > last, operation.sequence <= head?.sequence ?? .max else { throw .order }
      last = operation.sequence
      lines += 1
      guard lines <= head?.count ?? .max, lines <= DownOperation.countMax else { throw .count }
    case .record:
      guard let head, head.isFull else { throw .line }
      lines += 1
      guard lines <= head.count else { throw .count }
    }
    return read
  }

  /// After the last line. - Returns: the number for the next question. - Throws: `count` for an answer that is cut.
  public func finish() throws(DownFault) -> Int64 {
    guard let head else {
      guard lines > 0 else { throw .count }
      return last
    }
    guard lines == head.count else { throw .count }
    return head.sequence
  }
}
