import PrismProtocol
import PrismSQLite

/// A set of row ids, kept as ascending runs of neighbours: rows that came together stand together, so a packet of
/// thousands of rows is usually a handful of runs.
struct IDRuns: Equatable, Sendable {
  struct Run: Equatable, Sendable {
    var first: Int64
    var last: Int64
    var count: Int { Int(last - first + 1) }
  }

  private(set) var runs: [Run] = []
  private(set) var count = 0

  init() {}
  init(_ run: Run) { (runs, count) = ([run], run.count) }
  init(_ id: Int64) { self.init(Run(first: id, last: id)) }

  var isEmpty: Bool { runs.isEmpty }

  /// Whether these are rows of the ring. A packet has such rows only, or no such row.
  var isOfRing: Bool { runs.first.map { RowID.isKept($0.first) } ?? false }

  /// - Parameter id: above every id that is in.
  mutating func append(_ id: Int64) {
    count += 1
    guard let last = runs.last else { return runs.append(Run(first: id, last: id)) }
    precondition(last.last < id, "ids are appended in ascending order")
    if last.last + 1 == id {
      runs[runs.count - 1].last = id
    } else {
      runs.append(Run(first: id, last: id))
    }
  }

  /// - Throws: `invalidContent` for an id that is not above the others: only a damaged tree leads to rows out of their order.
  mutating func append(read id: Int64) throws(SQLiteError) {
    guard (runs.last?.last ?? .min) < id else { throw .invalidContent }
    append(id)
  }

  func run(of id: Int64) -> Run? {
    var (low, high) = (0, runs.count)
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].last < id { low = middle + 1 } else { high = middle }
    }
    return low < runs.count && runs[low].first <= id ? runs[low] : nil
  }

  /// The ids, ascending.
  var ids: some Sequence<Int64> { runs.lazy.flatMap { $0.first...$0.last } }

  /// The lower half (the larger one when the count is odd) and the upper.
  func halves() -> (IDRuns, IDRuns) {
    var (lower, upper) = (IDRuns(), IDRuns())
    for (index, id) in ids.enumerated() {
      if index < (count + 1) / 2 { lower.append(id) } else { upper.append(id) }
    }
    return (lower, upper)
  }

  func intersecting(_ others: [Int64: Int]) -> IDRuns {
    var result = IDRuns()
    for id in ids where others[id] != nil { result.append(id) }
    return result
  }

  /// All that is in one of `sets`.
  init(union sets: [IDRuns]) {
    for run in sets.flatMap(\.runs).sorted(by: { $0.first < $1.first }) {
      if let last = runs.last, run.first <= last.last + 1 {
        runs[runs.count - 1].last = max(last.last, run.last)
      } else {
        runs.append(run)
      }
    }
    count = runs.reduce(0) { $0 + $1.count }
  }

  func subtracting(_ others: Set<Int64>) -> IDRuns {
    var result = IDRuns()
    for id in ids where !others.contains(id) { result.append(id) }
    return result
  }

  // MARK: Runs that cover more than their ids

  private static let spanMax: Int64 = 1 << 31

  /// Adds a run of ids that are not in. It becomes one with its neighbours if nothing is between them.
  /// - Parameter isFree: whether no other id is between two.
  mutating func add(
    _ added: Run, joining isFree: (_ after: Int64, _ end: Int64) throws(SQLiteError) -> Bool
  ) throws(SQLiteError) {
    var (run, place) = (added, runs.firstIndex { $0.first > added.first } ?? runs.count)
    if place > 0, try Self.join(runs[place - 1], run, isFree) {
      place -= 1
      run.first = runs.remove(at: place).first
    }
    if place < runs.count, try Self.join(run, runs[place], isFree) { run.last = runs.remove(at: place).last }
    runs.insert(run, at: place)
    count = runs.reduce(0) { $0 + $1.count }
  }

  private static func join(
    _ lower: Run, _ upper: Run, _ isFree: (Int64, Int64) throws(SQLiteError) -> Bool
  ) throws(SQLiteError) -> Bool {
    guard upper.last - lower.first < spanMax else { return false }
    if lower.last + 1 == upper.first { return true }
    return try isFree(lower.last, upper.first)
  }

  /// - Parameter run: above every id that is in.
  mutating func append(_ run: Run) {
    runs.append(run)
    count += run.count
  }

  mutating func remove(_ id: Int64) { remove(through: id, from: id) }

  /// Takes out the ids from `first` to `last`.
  mutating func remove(through last: Int64, from first: Int64) {
    runs = runs.flatMap { run in
      var rest: [Run] = []
      if run.first < first { rest.append(Run(first: run.first, last: min(run.last, first - 1))) }
      if run.last > last { rest.append(Run(first: max(run.first, last + 1), last: run.last)) }
      return rest
    }
    count = runs.reduce(0) { $0 + $1.count }
  }

  func overlaps(_ other: IDRuns) -> Bool {
    runs.contains { run in other.runs.contains { $0.first <= run.last && run.first <= $0.last } }
  }

  // MARK: In the database: a JSON array of first, last, first, last…, which the views can read too.

  var text: String {
    "[" + runs.map { "\($0.first),\($0.last)" }.joined(separator: ",") + "]"
  }

  /// nil when `text` is not what `text` writes.
  init?(text: String) {
    guard text.hasPrefix("["), text.hasSuffix("]") else { return nil }
    let numbers = text.dropFirst().dropLast().split(separator: ",").map { Int64($0) }
    guard numbers.count.isMultiple(of: 2) else { return nil }
    for index in stride(from: 0, to: numbers.count, by: 2) {
      guard let first = numbers[index], let last = numbers[index + 1], first <= last, last - first < 1 << 32,
        (runs.last?.last ?? -1) < first
      else { return nil }
      runs.append(Run(first: first, last: last))
      count += runs[runs.count - 1].count
    }
  }
}
