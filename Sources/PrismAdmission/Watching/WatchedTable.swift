public import PrismProtocol

/// A table of records that a connection watches. Pure.
public struct WatchedTable: Sendable {
  /// The table, by its names.
  public struct Key: Hashable, Sendable, Comparable {
    /// The namespace of the table.
    public var namespace: NamespaceName
    /// The name of the table.
    public var table: RecordTableName

    public init(namespace: NamespaceName, table: RecordTableName) { (self.namespace, self.table) = (namespace, table) }

    public static func < (a: Self, b: Self) -> Bool { (a.namespace, a.table) < (b.namespace, b.table) }
  }

  let place: WatchPlace
  /// Its changes are asked for (`newest`), and not sent.
  let isSilent: Bool
  /// The generation that the client has; nil: the answer is still to come.
  private(set) var told: Int64?
  /// The newest change that the client does not have.
  private(set) var newest: RecordTableChange?

  init(place: WatchPlace, isSilent: Bool) { (self.place, self.isSilent) = (place, isSilent) }

  var bytes: Int { 192 + (newest?.bytes ?? 0) }
  /// There is a change to be sent.
  var hasChange: Bool { told != nil && newest != nil && !isSilent }

  /// The client gets this generation as the answer; changes of earlier commits are part of it.
  mutating func begin(at generation: Int64) {
    told = generation
    if let known = newest, known.generation <= generation { newest = nil }
  }

  /// A second change before the first is taken: the client gets one line, without ids.
  mutating func note(_ change: RecordTableChange) {
    let isSecond = newest != nil
    newest = change
    if isSecond || isSilent { newest?.ids = nil }
  }

  mutating func takeChange() -> RecordTableChange? {
    guard let change = newest else { return nil }
    (told, newest) = (change.generation, nil)
    return change
  }
}
