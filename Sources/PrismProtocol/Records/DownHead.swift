/// The first line of an answer: whether all records follow, and up to which operation the answer goes.
public struct DownHead: Equatable, Sendable {
  /// All records of the table follow; else operations.
  public var isFull: Bool
  /// The number of the newest operation in it. The next question is `after` it. 0: there never was an operation.
  public var sequence: Int64
  /// Lines that follow.
  public var count: Int
  /// The store that answers; nil: it tells no identity.
  public var store: StoreMark?
  /// The store never had a record of the table, nor a change of one.
  public var isUnheard: Bool

  public init(isFull: Bool, sequence: Int64, count: Int, store: StoreMark? = nil, isUnheard: Bool = false) {
    (self.isFull, self.sequence, self.count) = (isFull, sequence, count)
    (self.store, self.isUnheard) = (store, isUnheard)
  }

  /// The line, without a line feed.
  public var line: [UInt8] {
    let known = (store.map { #","store":"\#($0)""# } ?? "") + (isUnheard ? #","unheard":true"# : "")
    return Array(#"{"full":\#(isFull),"seq":\#(sequence),"count":\#(count)\#(known)}"#.utf8)
  }

  init?(_ members: DownMembers) {
    guard let isFull = members.bool(.full), let sequence = members.integer(.seq), sequence >= 0,
      let count = members.integer(.count), count >= 0
    else { return nil }
    self.init(
      isFull: isFull, sequence: sequence, count: Int(count), store: members.string(.store).flatMap { StoreMark($0) },
      isUnheard: members.bool(.unheard) ?? false)
  }
}
