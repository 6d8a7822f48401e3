public import PrismProtocol

/// A state of a table of records, as a watch tells it.
public struct RecordChange: Sendable, Equatable {
  /// The number of the table's changes: of two states the one with another number is a newer one.
  public var generation: Int
  /// The records that changed since the state before it; nil: read the whole table, as at the beginning.
  public var ids: [RecordID]?

  /// `{"generation":18,"ids":["a"]}`, as the daemon tells it.
  public var json: JSONValue {
    let ids = ids.map { [JSONValue.Member("ids", .array($0.map { .string($0.text) }))] } ?? []
    return .object([.init("generation", .int(generation))] + ids)
  }

  init(generation: Int, ids: [RecordID]?) { (self.generation, self.ids) = (generation, ids) }
}

extension RecordChange: WatchedState {
  init?(_ value: JSONValue) {
    guard let generation = value["generation"]?.int else { return nil }
    let ids = value["ids"]?.array.map { $0.compactMap { $0.string.flatMap { RecordID($0) } } }
    self.init(generation: generation, ids: ids)
  }

  func says(the other: RecordChange) -> Bool { generation == other.generation }

  var withoutDetails: RecordChange { RecordChange(generation: generation, ids: nil) }
}
