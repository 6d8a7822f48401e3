public import PrismProtocol
import PrismSQLite

/// Chooses the changes of the next packet, in the order in which the server can carry them out (docs/records.md, "Order").
struct RecordSelection {
  /// A change that becomes an operation.
  struct Choice {
    var record: RecordRow
    /// The new fields, with the server's ids in place of references; nil for a deletion.
    let fields: JSONValue?
    /// It leaves out references that can't be given yet: an update must follow.
    let isPartial: Bool
  }

  private struct Candidate {
    let number: Int64
    let position: Int64
    let rank: Int
  }

  /// Candidates that are looked at for each operation of a packet.
  private static let looksPerItem = 20

  private let access: RecordAccess
  private let tables: [Int: RecordTable]
  private let namespace: NamespaceName
  private let claim: RecordClaim
  private let itemsMax: Int
  private let bytesMax: Int
  private(set) var choices: [Choice] = []
  private var bytes = 0
  private var isFull = false

  init(_ claim: Claim, _ records: RecordClaim, _ access: RecordAccess) {
    (self.access, self.claim, namespace) = (access, records, claim.namespace)
    (itemsMax, bytesMax) = (claim.itemsMax, claim.bytesMax)
    tables = records.tables.reduce(into: [:]) { tables, table in
      if let number = access.table(table.name, of: claim.namespace) { tables[number] = table }
    }
  }

  /// A class begins only if nothing of the class before it is left.
  mutating func choose() throws(SQLiteError) {
    guard try take(.insert), try take(.update) else { return }
    _ = try take(.delete)
  }

  // MARK: Classes

  /// - Returns: whether nothing of it is left.
  private mutating func take(_ kind: RecordOperation.Kind) throws(SQLiteError) -> Bool {
    let candidates = try candidates(kind)
    var left = 0
    for candidate in candidates {
      if try !take(candidate, opens: false) { left += 1 }
      if isFull { return false }
    }
    // Records that refer to each other in a circle: one goes without the reference.
    if kind == .insert, left > 0, choices.isEmpty, !waitsForAnswers, let first = candidates.first {
      _ = try take(first, opens: true)
    }
    return left == 0 && candidates.count < looksMax
  }

  private var looksMax: Int { itemsMax * Self.looksPerItem }

  /// Operations have an answer to come: changes may wait for it.
  private var waitsForAnswers: Bool {
    tables.keys.contains { access.state.records[reading: $0].ledger[.claimed] > 0 }
  }

  /// Oldest first; deletions of a table before those of the tables that it refers to, newest record first.
  private func candidates(_ kind: RecordOperation.Kind) throws(SQLiteError) -> [Candidate] {
    let order = RecordOrder(Array(tables.values))
    var found: [Candidate] = []
    for (number, table) in tables where access.state.records[reading: number].ledger[.waiting] > 0 {
      let waiting = try access.transaction.statement(RecordStatement.waiting).bind([
        ":tab": number, ":next": kind.rawValue, ":bound": claim.bound, ":limit": looksMax,
      ])
      let rank = kind == .delete ? order.rank(table.name) : 0
      try waiting.forEachRow(of: RecordStatement.Head.self) { row in
        found.append(Candidate(number: row.int64(.number), position: row.int64(.position), rank: rank))
      }
    }
    if kind == .delete { return found.sorted { ($0.rank, $1.number) < ($1.rank, $0.number) } }
    return Array(found.sorted { $0.position < $1.position }.prefix(looksMax))
  }

  // MARK: One change

  /// - Parameter opens: references to records that the server does not have are left out.
  /// - Returns: false: it can't leave yet, or the packet is full.
  private mutating func take(_ candidate: Candidate, opens: Bool) throws(SQLiteError) -> Bool {
    guard let record = try access.record(candidate.number), let kind = record.standing.next,
      let table = tables[record.table]
    else { throw .invalidContent }
    var choice = Choice(record: record, fields: nil, isPartial: false)
    if kind != .delete {
      guard let fields = try? JSONValue(parsing: record.fields), let members = fields.object else {
        throw .invalidContent
      }
      guard let (resolved, isPartial) = try resolve(members, table, opens: opens) else { return false }
      choice = Choice(record: record, fields: .object(resolved), isPartial: isPartial)
    }
    let size = record.fields.count + 512
    guard choices.isEmpty || (choices.count < itemsMax && size <= bytesMax - bytes) else {
      isFull = true
      return false
    }
    choices.append(choice)
    bytes += size
    isFull = choices.count >= itemsMax
    return true
  }

  /// - Returns: nil if the server does not have a record that is referred to.
  private func resolve(
    _ members: [JSONValue.Member], _ table: RecordTable, opens: Bool
  ) throws(SQLiteError) -> (members: [JSONValue.Member], isPartial: Bool)? {
    guard !table.references.isEmpty else { return (members, false) }
    var (result, isPartial): ([JSONValue.Member], Bool) = ([], false)
    for member in members {
      guard let target = try access.target(of: member, table, in: namespace) else {
        result.append(member)
        continue
      }
      if target.standing.isKnown || target.standing.isRefused || !target.isThere {
        result.append(.init(member.key, .string(target.knownID.text)))
      } else {
        guard opens else { return nil }
        isPartial = true
      }
    }
    return (result, isPartial)
  }
}

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
