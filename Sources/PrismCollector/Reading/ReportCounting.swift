import PrismBase

/// A question for counts or numbers. It is answered in parts, from the newest reports to the oldest: each part adds to what the
/// parts before it found, so that the last one is whole.
struct ReportCounting: Sendable {
  private struct Cell: Hashable {
    let time: Int64, group: ExactText
    init(_ time: Int64, _ group: String) { (self.time, self.group) = (time, ExactText(group)) }
  }

  /// One question keeps as many cells of time and group, and as much of numbers.
  static let (cellsMax, numbersMax) = (200_000, 3_000_000)
  /// Memory of a cell, in numbers.
  private static let cellSize = 8

  let filter: ReportFilter
  let grouping: ReportGrouping
  /// Of a field of the meta whose numbers are asked for, by its keys; nil: counts are.
  private let path: [String]?
  private var walk: ReportScan.Walk?
  private var counted: [Cell: Int] = [:]
  private var numbered: [Cell: NumberCounts] = [:]
  /// How far it came; `since` is nil only if it is whole.
  private(set) var reach = ReportScan.Reach(timeIsUp: true)

  init(_ filter: ReportFilter, _ grouping: ReportGrouping, numbersOf path: [String]? = nil) {
    (self.filter, self.grouping, self.path) = (filter, grouping, path)
  }

  /// Whether a further part has more. Without it and not whole, the question keeps as much as it may.
  var goesOn: Bool { reach.timeIsUp }
  /// The share of the reports that is read; 1: it is whole.
  var share: Double { walk?.share ?? 0 }
  /// Memory that it takes, in numbers.
  var size: Int { counted.count * Self.cellSize + numbersSize }
  private var numbersSize: Int { numbered.values.reduce(0) { $0 + $1.size } }

  /// Reads the next part: a window at least, and further ones until the time is up.
  mutating func goOn(_ scan: ReportScan, within budget: Duration) async throws(StoreFailure) {
    if walk == nil { walk = try await scan.walk(filter, countedBy: path == nil ? grouping : nil) }
    guard var walk else { return }
    var (left, from) = (Self.numbersMax - numbersSize, Int64?.none)
    reach = try await scan.goOn(&walk, filter, within: budget) { (part) throws(StoreFailure) in
      guard let path else {
        let found = try await scan.queries.counts(part, grouping)
        for one in found { counted[Cell(one.time, one.group), default: 0] += one.count }
        return counted.count < Self.cellsMax
      }
      let found = try await scan.queries.numbers(part, path: path, grouping, limit: left)
      from = found.from
      for one in found.numbers { numbered[Cell(one.time, one.group), default: NumberCounts()].add(one.values) }
      left = Self.numbersMax - numbersSize
      return left > 0 && from == nil
    }
    if let from { reach.id = from }
    // It keeps as much as it may: what is before that is left out.
    if walk.share < 1, !reach.timeIsUp, let id = reach.id { reach.since = try await scan.receivedTime(from: id) }
    self.walk = walk
  }

  /// By time and group; those of one bucket and group are one.
  var counts: [ReportCount] {
    counted.map { ReportCount(time: $0.key.time, group: $0.key.group.text, count: $0.value) }
      .sorted { ($0.time, $0.group) < ($1.time, $1.group) }
  }

  var numbers: [ReportNumbers] {
    numbered.map { cell, values in
      var values = values
      values.settle()
      return ReportNumbers(time: cell.time, group: cell.group.text, values: values)
    }
  }
}

extension ReportScan {
  /// The answer of one part, which ends when the time is up. - Parameter budget: nil: as long as it takes.
  func counts(
    _ filter: ReportFilter, _ grouping: ReportGrouping, within budget: Duration? = countBudget
  ) async throws(StoreFailure) -> (counts: [ReportCount], reach: Reach) {
    var counting = ReportCounting(filter, grouping)
    repeat { try await counting.goOn(self, within: budget ?? Self.countBudget) } while budget == nil && counting.goesOn
    return (counting.counts, counting.reach)
  }
}
