import PrismProtocol

/// The segments of a queue, oldest rows first: each row of one is older than each row of the next, within its priority. The
/// last one takes new rows. A segment whose rows are all delivered is emptied at once, by its table.
struct RowSegments: Sendable {
  /// Rows that wait for long, between others that leave, should not hold ever more tables.
  static let countMax = 64
  /// After a new table SQLite prepares every statement again. Three new ones together cost little more.
  private static let tableGrowth = 4
  private static let numbersPerSegment = 5

  private(set) var list = [RowSegment(number: 0, first: 0)]
  /// Tables that the queue has; those that are in no segment are empty.
  private(set) var tableCount = 1

  init() {}

  var current: RowSegment { list[list.count - 1] }
  var spentBytes: Int { list.reduce(0) { $0 + $1.spentBytes } }
  /// Delivered rows that are still in their tables.
  var spent: [IDRuns.Run] { list.flatMap(\.spent.runs).sorted { $0.first < $1.first } }

  subscript(place: Int) -> RowSegment {
    _read { yield list[place] }
    _modify { yield &list[place] }
  }

  /// The place in `list` of the segment that a row of this id belongs to.
  func place(of id: Int64) -> Int {
    if list.count == 1 { return 0 }
    let sequence = RowID(value: id).sequence
    return list.lastIndex { $0.first <= sequence } ?? 0
  }

  func table(of id: Int64, _ queue: QueueID) -> RowTable { RowTable(queue, number: list[place(of: id)].number) }

  func currentTable(_ queue: QueueID) -> RowTable { RowTable(queue, number: current.number) }

  func tables(_ queue: QueueID) -> [RowTable] { list.map { RowTable(queue, number: $0.number) } }

  func spentRun(of id: Int64) -> IDRuns.Run? { list[place(of: id)].spent.run(of: id) }

  /// The runs of `members` in their order, each cut where another segment begins.
  func pieces(of members: IDRuns) -> [(place: Int, run: IDRuns.Run)] {
    if list.count == 1 { return members.runs.map { (0, $0) } }
    var pieces: [(place: Int, run: IDRuns.Run)] = []
    for run in members.runs {
      var (rest, place) = (run, place(of: run.first))
      while place + 1 < list.count {
        let end = run.first - RowID(value: run.first).sequence + list[place + 1].first
        if end > rest.last { break }
        pieces.append((place, IDRuns.Run(first: rest.first, last: end - 1)))
        (rest.first, place) = (end, place + 1)
      }
      pieces.append((place, rest))
    }
    return pieces
  }

  /// Begins a segment for new rows. There are fewer than `countMax`.
  /// - Parameter sequence: of the next row. - Returns: numbers of the tables that must be made now.
  mutating func begin(at sequence: Int64) -> Range<Int> {
    let (used, oldCount) = (Set(list.map(\.number)), tableCount)
    if used.count == tableCount { tableCount = min(tableCount * Self.tableGrowth, Self.countMax) }
    let number = (0..<tableCount).first { !used.contains($0) }!
    list.append(RowSegment(number: number, first: sequence))
    return oldCount..<tableCount
  }

  /// A row takes an id that may be in a run of delivered ones.
  mutating func take(_ id: Int64) { list[place(of: id)].spent.remove(id) }

  mutating func addBytes(_ bytes: Int) { list[list.count - 1].bytes += bytes }

  /// The table of the segment is empty. The last segment stays.
  mutating func removeEmpty(at place: Int) {
    if place == list.count - 1 { list[place].empty() } else { list.remove(at: place) }
  }
}

// MARK: In the ledger: JSON arrays, which the views can read too.
extension RowSegments {
  /// The number of tables, then the numbers of each segment. nil: as it is made with the namespace.
  var text: String? {
    if tableCount == 1 && list[0].bytes == 0 && list[0].spentRows == 0 { return nil }
    let numbers = list.flatMap {
      [Int64($0.number), $0.first, Int64($0.bytes), Int64($0.spentRows), Int64($0.spentBytes)]
    }
    return "[" + ([Int64(tableCount)] + numbers).map { String($0) }.joined(separator: ",") + "]"
  }

  /// nil if no run of delivered rows is in the tables.
  var spentText: String? {
    let runs = spent
    return runs.isEmpty ? nil : "[" + runs.map { "\($0.first),\($0.last)" }.joined(separator: ",") + "]"
  }

  /// nil if these are not what `text` and `spentText` write.
  init?(text: String?, spentText: String?) {
    guard let text else {
      if spentText == nil { return } else { return nil }
    }
    guard text.hasPrefix("["), text.hasSuffix("]") else { return nil }
    let numbers = text.dropFirst().dropLast().split(separator: ",").compactMap { Int64($0) }
    guard numbers.count > Self.numbersPerSegment, numbers.count % Self.numbersPerSegment == 1,
      (1...Int64(Self.countMax)).contains(numbers[0]), numbers.allSatisfy({ $0 >= 0 })
    else { return nil }
    (tableCount, list) = (Int(numbers[0]), [])
    for start in stride(from: 1, to: numbers.count, by: Self.numbersPerSegment) {
      guard numbers[start] < numbers[0], (list.last?.first ?? -1) < numbers[start + 1] else { return nil }
      var segment = RowSegment(number: Int(numbers[start]), first: numbers[start + 1])
      (segment.bytes, segment.spentRows) = (Int(numbers[start + 2]), Int(numbers[start + 3]))
      segment.spentBytes = Int(numbers[start + 4])
      list.append(segment)
    }
    guard Set(list.map(\.number)).count == list.count, read(spentText ?? "[]") else { return nil }
  }

  private mutating func read(_ spentText: String) -> Bool {
    guard let spent = IDRuns(text: spentText) else { return false }
    for run in spent.runs {
      let place = place(of: run.first)
      guard place == self.place(of: run.last) else { return false }
      list[place].spent.append(run)
    }
    return list.allSatisfy { $0.spent.isEmpty == ($0.spentRows == 0) }
  }
}
