import PrismSQLite

/// The statements that the store keeps prepared. The least used ones go when there are many.
struct PreparedStatements {
  /// Two busy queues need about 20; the bound keeps 1,000 namespaces from holding 8 MiB of statements.
  private static let countMax = 160

  private var entries: [StoreStatement: (statement: SQLiteStatement, lastUse: Int)] = [:]
  private var uses = 0

  /// - Returns: nil if it is not there.
  mutating func use(_ name: StoreStatement) -> SQLiteStatement? {
    guard let place = entries.index(forKey: name) else { return nil }
    uses += 1
    entries.values[place].lastUse = uses
    return entries.values[place].statement
  }

  mutating func add(_ statement: SQLiteStatement, _ name: StoreStatement) {
    if entries.count >= Self.countMax { dropLeastUsed() }
    uses += 1
    entries[name] = (statement, uses)
  }

  mutating func remove(where isGone: (StoreStatement) -> Bool) { entries = entries.filter { !isGone($0.key) } }

  private mutating func dropLeastUsed() {
    let oldest = entries.sorted { $0.value.lastUse < $1.value.lastUse }.prefix(Self.countMax / 3)
    for (name, _) in oldest { entries[name] = nil }
  }
}
