/// The first line of an answer: whether all records follow, and up to which operation the answer goes.
public struct DownHead: Equatable, Sendable {
  /// All records of the table follow; else operations.
  public var isFull: Bool
  /// The number of the newest operation in it. The next question is `after` it. 0: there never was an operation.
  public var sequence: Int64
  /// Lines that follow.
  public var count: Int

  public init(isFull: Bool, sequence: Int64, count: Int) {
    (self.isFull, self.sequence, self.count) = (isFull, sequence, count)
  }

  /// The line, without a line feed.
  public var line: [UInt8] { Array(#"{"full":\#(isFull),"seq":\#(sequence),"count":\#(count)}"#.utf8) }

  init?(_ members: DownMembers) {
    guard let isFull = members.bool(.full), let sequence = members.integer(.seq), sequence >= 0,
      let count = members.integer(.count), count >= 0
    else { return nil }
    self.init(isFull: isFull, sequence: sequence, count: Int(count))
  }
}
