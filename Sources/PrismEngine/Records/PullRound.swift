import PrismProtocol
import PrismStore

/// One round of questions: each table once, and again while operations wait for those of other tables. A value that decides.
struct PullRound: Sendable {
  /// Passes over the tables at most: a server may name dependencies without end.
  private static let passesMax = 8

  /// By the order in which they are asked: tables that others refer to come first.
  private let tables: [RecordTableName]
  /// Up to this number a table has executed all that the server did.
  private var through: [RecordTableName: Int64]
  /// The number before which a table's operation waits.
  private var blocked: [RecordTableName: Int64] = [:]
  /// The newest number that any answer of this round held: what is asked later holds all up to it.
  private var seen: Int64 = 0
  private var todo: [RecordTableName]
  private var hasMoved = false
  private var passes = 1

  /// - Parameter through: what the store knows of each table that is asked.
  /// - Parameter skipped: tables that can't be asked now; operations may wait for theirs.
  init(_ tables: [RecordTableName], through: [RecordTableName: Int64], skipped: [RecordTableName: Int64] = [:]) {
    (self.tables, todo) = (tables, tables)
    self.through = through.merging(skipped) { $1 }
  }

  /// The next table to be asked, and how far the others are; nil: the round is over.
  mutating func next() -> (table: RecordTableName, othersThrough: Int64)? {
    if todo.isEmpty { beginPass() }
    guard !todo.isEmpty else { return nil }
    let table = todo.removeFirst()
    return (table, through.filter { $0.key != table }.values.min() ?? .max)
  }

  private mutating func beginPass() {
    guard let furthest = blocked.values.max(), hasMoved, passes < Self.passesMax else { return }
    todo = tables.filter { blocked[$0] != nil || (through[$0] ?? 0) < furthest - 1 }
    (hasMoved, passes) = (false, passes + 1)
  }

  /// The newest number before a question: its answer holds everything up to it.
  var seenBefore: Int64 { seen }

  /// - Parameter seenBefore: when the question was asked.
  mutating func applied(_ outcome: DownOutcome, sequence: Int64, to table: RecordTableName, seenBefore: Int64) {
    let before = through[table] ?? 0
    blocked[table] = nil
    switch outcome.end {
    case .done:
      through[table] = max(before, sequence, seenBefore)
      seen = max(seen, sequence)
    case .waits(let number):
      through[table] = max(before, number - 1)
      blocked[table] = number
      seen = max(seen, number)
    case .tableFull, .inFlight, .outdated, .overtaken, .unreadable: break
    }
    if outcome.executed > 0 || (through[table] ?? 0) > before { hasMoved = true }
  }
}
