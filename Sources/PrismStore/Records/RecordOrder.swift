public import PrismProtocol

/// The order of tables in which records are deleted: a table before those that it refers to. Pure.
public struct RecordOrder: Sendable {
  /// By table; less comes first. Tables that refer to each other have one rank.
  private let ranks: [RecordTableName: Int]

  public init(_ tables: [RecordTable]) {
    let targets = Dictionary(tables.map { ($0.name, Set($0.references.values)) }, uniquingKeysWith: { a, _ in a })
    let reached = Dictionary(
      uniqueKeysWithValues: targets.keys.map { ($0, Self.reached(from: $0, targets)) })
    // A table that reaches more others comes first; those of a circle reach the same ones.
    ranks = reached.mapValues { -$0.count }
  }

  /// The tables that records of this one refer to, directly or by others, and itself.
  private static func reached(
    from start: RecordTableName, _ targets: [RecordTableName: Set<RecordTableName>]
  ) -> Set<RecordTableName> {
    var (reached, open): (Set<RecordTableName>, [RecordTableName]) = ([start], [start])
    while let name = open.popLast() {
      for target in targets[name] ?? [] where reached.insert(target).inserted { open.append(target) }
    }
    return reached
  }

  /// Less comes first.
  public func rank(_ table: RecordTableName) -> Int { ranks[table] ?? 0 }
}
