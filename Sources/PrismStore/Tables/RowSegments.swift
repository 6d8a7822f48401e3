import PrismProtocol

/// The segments of a queue, oldest rows first: each row of one is older than each row of the next, within its priority. The
/// last one takes new rows. A segment whose rows are all delivered is emptied at once, by its table. Kept rows are in
/// segments of their own among the others, the ring.
struct RowSegments: Sendable {
  /// Rows that wait for long, between others that leave, should not hold ever more tables.
  static let countMax = 64
  /// After a new table SQLite prepares every statement again. Three new ones together cost little more.
  private static let tableGrowth = 4
  private static let numbersPerSegment = 5

  private(set) var list = [RowSegment(number: 0, first: 0)]
  /// Tables that the queue has; those that are in no segment are empty.
  private(set) var tableCount = 1

  /// Takes new rows that leave by themselves.
  var current: RowSegment { list[lastPlace(isRing: false) ?? 0] }
  /// Takes new rows that are kept; nil before the first.
  var currentRing: RowSegment? { lastPlace(isRing: true).map { list[$0] } }
  var keptBytes: Int { list.reduce(0) { $0 + ($1.kept?.bytes ?? 0) } }
  var spentBytes: Int { list.reduce(0) { $0 + $1.spentBytes } }
  /// Delivered rows that are still in their tables.
  var spent: [IDRuns.Run] { list.flatMap(\.spent.runs).sorted { $0.first < $1.first } }

  subscript(place: Int) -> RowSegment {
    get { list[place] }
    _modify { yield &list[place] }
  }

  /// The place in `list` of the segment that a row of this id belongs to.
  func place(of id: Int64) -> Int {
    if list.count == 1 { return 0 }
    let (sequence, isRing) = (RowID(value: id).sequence, RowID.isKept(id))
    return list.lastIndex { $0.first <= sequence && $0.isRing == isRing } ?? list.firstIndex { $0.isRing == isRing }
      ?? 0
  }

  /// The place of the segment that takes new rows; nil: there is no ring.
  func lastPlace(isRing: Bool) -> Int? { list.lastIndex { $0.isRing == isRing } }

  /// The place of the segment whose rows come after those of the one at `place`; nil: it takes new rows.
  func next(_ place: Int) -> Int? { list[(place + 1)...].firstIndex { $0.isRing == list[place].isRing } }

  func table(of id: Int64, _ queue: QueueID) -> RowTable { RowTable(queue, number: list[place(of: id)].number) }

  func currentTable(_ queue: QueueID, isRing: Bool = false) -> RowTable {
    RowTable(queue, number: isRing ? currentRing?.number ?? 0 : current.number)
  }

  func tables(_ queue: QueueID) -> [RowTable] { list.map { RowTable(queue, number: $0.number) } }

  func spentRun(of id: Int64) -> IDRuns.Run? { list[place(of: id)].spent.run(of: id) }

  /// The runs of `members` in their order, each cut where another segment begins.
  func pieces(of members: IDRuns) -> [(place: Int, run: IDRuns.Run)] {
    if list.count == 1 { return members.runs.map { (0, $0) } }
    var pieces: [(place: Int, run: IDRuns.Run)] = []
    for run in members.runs {
      var (rest, place) = (run, place(of: run.first))
      while let next = next(place) {
        let end = run.first - RowID(value: run.first).sequence + list[next].first
        if end > rest.last { break }
        pieces.append((place, IDRuns.Run(first: rest.first, last: end - 1)))
        (rest.first, place) = (end, next)
      }
      pieces.append((place, rest))
    }
    return pieces
  }

  /// Begins a segment for new rows. There are fewer than `countMax`.
  /// - Parameter sequence: of the next row.
  /// - Returns: numbers of the tables that must be made now.
  mutating func begin(at sequence: Int64, isRing: Bool = false) -> Range<Int> {
    let (used, oldCount) = (Set(list.map(\.number)), tableCount)
    if used.count == tableCount { tableCount = min(tableCount * Self.tableGrowth, Self.countMax) }
    let number = (0..<tableCount).first { !used.contains($0) }!
    list.append(RowSegment(number: number, first: sequence, isRing: isRing))
    return oldCount..<tableCount
  }

  /// A row takes an id that may be in a run of delivered ones.
  mutating func take(_ id: Int64) { list[place(of: id)].spent.remove(id) }

  mutating func addBytes(_ bytes: Int, isRing: Bool = false) { list[lastPlace(isRing: isRing) ?? 0].bytes += bytes }

  /// Counts rows as kept, or no more. - Parameter owners: their bytes by user.
  mutating func keep(_ rows: Int, _ owners: [RowOwner: Int], hasClientIDs: Bool = false, at place: Int) {
    guard var kept = list[place].kept else { return }
    let bytes = owners.values.reduce(kept.bytes, +)
    (kept.rows, kept.bytes) = (kept.rows + rows, kept.rows + rows == 0 ? 0 : max(0, bytes))
    kept.owners?.merge(owners, uniquingKeysWith: +)
    kept.owners = kept.rows == 0 ? [:] : kept.owners?.filter { $0.value > 0 }
    kept.hasClientIDs = kept.hasClientIDs || hasClientIDs
    list[place].kept = kept
  }

  /// The rows of the segment at `other`, which comes next of the ring, were moved into the table of the one at `place`.
  mutating func merge(_ other: Int, into place: Int) {
    let added = list[other]
    list[place].bytes += added.bytes
    list[place].spent = IDRuns(union: [list[place].spent, added.spent])
    list[place].spentRows += added.spentRows
    list[place].spentBytes += added.spentBytes
    list[place].spentSince = [list[place].spentSince, added.spentSince].compactMap(\.self).min()
    if let kept = added.kept { list[place].kept?.add(kept) }
    list.remove(at: other)
  }

  /// Counts kept rows by their types, if those of the segment are counted.
  mutating func keep(_ counts: [Int64: RowCount], at place: Int) {
    list[place].kept?.types?.merge(counts, uniquingKeysWith: +)
  }

  /// Whether the segment takes new rows.
  func isCurrent(_ place: Int) -> Bool { lastPlace(isRing: list[place].isRing) == place }

  /// The table of the segment is empty. One that takes new rows stays, but for the ring's: it has no place for its age.
  mutating func removeEmpty(at place: Int) {
    if isCurrent(place), !list[place].isRing { list[place].empty() } else { list.remove(at: place) }
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

  /// Number, kept rows, their bytes and whether a client gave ids, of each segment of the ring. nil: there is no ring.
  var ringText: String? {
    let numbers = list.flatMap { segment in
      segment.kept.map { [segment.number, $0.rows, $0.bytes, $0.hasClientIDs ? 1 : 0] } ?? []
    }
    return numbers.isEmpty ? nil : "[" + numbers.map { String($0) }.joined(separator: ",") + "]"
  }

  /// nil if these are not what `text`, `spentText` and `ringText` write.
  init?(text: String?, spentText: String?, ringText: String?) {
    guard let text else {
      if spentText == nil, ringText == nil { return } else { return nil }
    }
    guard let numbers = Self.numbers(text) else { return nil }
    guard numbers.count > Self.numbersPerSegment, numbers.count % Self.numbersPerSegment == 1,
      (1...Int64(Self.countMax)).contains(numbers[0]), numbers.allSatisfy({ $0 >= 0 })
    else { return nil }
    (tableCount, list) = (Int(numbers[0]), [])
    for start in stride(from: 1, to: numbers.count, by: Self.numbersPerSegment) {
      guard numbers[start] < numbers[0], (list.last?.first ?? 0) <= numbers[start + 1] else { return nil }
      var segment = RowSegment(number: Int(numbers[start]), first: numbers[start + 1])
      (segment.bytes, segment.spentRows) = (Int(numbers[start + 2]), Int(numbers[start + 3]))
      segment.spentBytes = Int(numbers[start + 4])
      list.append(segment)
    }
    guard Set(list.map(\.number)).count == list.count, readRing(ringText ?? "[]"), read(spentText ?? "[]")
    else { return nil }
  }

  private static func numbers(_ text: String) -> [Int64]? {
    guard text.hasPrefix("["), text.hasSuffix("]") else { return nil }
    return text.dropFirst().dropLast().split(separator: ",").compactMap { Int64($0) }
  }

  private mutating func readRing(_ text: String) -> Bool {
    guard let numbers = Self.numbers(text), numbers.count.isMultiple(of: 4) else { return false }
    for start in stride(from: 0, to: numbers.count, by: 4) {
      guard let place = list.firstIndex(where: { $0.number == numbers[start] }), numbers[start + 1] >= 0,
        numbers[start + 2] >= 0
      else { return false }
      list[place].kept = .init(
        rows: Int(numbers[start + 1]), bytes: Int(numbers[start + 2]), hasClientIDs: numbers[start + 3] != 0)
    }
    return list.contains { !$0.isRing }
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

/// A part of a queue's rows, in a table of its own.
struct RowSegment: Sendable {
  /// Of its `RowTable`.
  let number: Int
  /// The lowest sequence that its rows may have. The oldest segment may hold lower ones, of rows that wait again.
  let first: Int64
  /// Sum of `size` of the rows that were inserted since its table was empty.
  var bytes = 0
  /// Ids of delivered rows that are still in the table. A run may cover ids that no row has.
  var spent = IDRuns()
  /// The exact number of these rows.
  var spentRows = 0
  /// About the sum of their sizes.
  var spentBytes = 0
  /// When the first of them was delivered, as far as this process knows; nil: not known, or no such row is there.
  var spentSince: Duration?

  /// Its rows are of the ring; nil: they leave by themselves.
  var kept: Kept?

  /// The rows of a segment of the ring that are not to leave.
  struct Kept: Sendable, Equatable {
    var rows = 0
    var bytes = 0
    /// A client gave the id of one.
    var hasClientIDs = false
    /// By the numbers of their types; nil: not counted. It is not in the ledger, but counted again where it is needed.
    var types: [Int64: RowCount]?
    /// Their bytes by user; nil: not counted, as `types`.
    var owners: [RowOwner: Int]?

    mutating func add(_ other: Kept) {
      (rows, bytes, hasClientIDs) = (rows + other.rows, bytes + other.bytes, hasClientIDs || other.hasClientIDs)
      types = other.types.flatMap { types?.merging($0, uniquingKeysWith: +) }
      owners = other.owners.flatMap { owners?.merging($0, uniquingKeysWith: +) }
    }
  }

  init(number: Int, first: Int64, isRing: Bool = false) {
    (self.number, self.first, kept) = (number, first, isRing ? Kept(owners: [:]) : nil)
  }

  var isRing: Bool { kept != nil }

  mutating func empty() { self = RowSegment(number: number, first: first, isRing: isRing) }
}

extension IDRuns {
  /// The ids between the runs, without their bounds.
  var gaps: [(after: Int64, end: Int64)] {
    var (ranges, after): ([(after: Int64, end: Int64)], Int64) = ([], .min)
    for run in runs {
      ranges.append((after, run.first))
      after = run.last
    }
    return ranges + [(after, .max)]
  }
}
