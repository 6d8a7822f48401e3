import PrismBase
import PrismProtocol

/// A question for counts or numbers. It is answered in parts, from the newest reports to the oldest: each part adds to what the
/// parts before it found, so that the last one is whole.
struct ReportCounting: Sendable {
  enum Figure: Sendable, Equatable {
    case rows
    /// The reports that the rows are for: a row is for as many as its `REPEAT_COUNT` says.
    case reports
    /// The numbers of a field of the meta, by its path of keys.
    case numbers([String])
  }

  private struct Cell: Hashable {
    let time: Int64, group: ExactText
    init(_ time: Int64, _ group: String) { (self.time, self.group) = (time, ExactText(group)) }
  }

  /// One question keeps as many cells of time and group, and as much of numbers.
  static let (cellsMax, numbersMax) = (200_000, 3_000_000)
  /// Memory of a cell, in numbers.
  private static let cellSize = 8
  /// A row is for no more reports.
  static let weightMax = 1_000_000.0

  let filter: ReportFilter
  let grouping: ReportGrouping
  private let figure: Figure
  private var walk: ReportScan.Walk?
  private var counted: [Cell: Int] = [:]
  private var numbered: [Cell: NumberCounts] = [:]
  /// How far it came; `since` is nil only if it is whole.
  private(set) var reach = ReportScan.Reach(timeIsUp: true)

  init(_ filter: ReportFilter, _ grouping: ReportGrouping, _ figure: Figure = .rows) {
    (self.filter, self.grouping, self.figure) = (filter, grouping, figure)
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
    var (numbersOnly, path) = (false, figure == .reports ? ["REPEAT_COUNT"] : nil)
    if case .numbers(let own) = figure { (numbersOnly, path) = (true, own) }
    if walk == nil { walk = try await scan.walk(filter, countedBy: numbersOnly ? nil : grouping) }
    guard var walk else { return }
    var (left, from) = (Self.numbersMax - numbersSize, Int64?.none)
    reach = try await scan.goOn(&walk, filter, within: budget) { (part) throws(StoreFailure) in
      if !numbersOnly {
        let found = try await scan.queries.counts(part, grouping)
        for one in found { counted[Cell(one.time, one.group), default: 0] += one.count }
      }
      guard let path else { return counted.count < Self.cellsMax }
      let found = try await scan.queries.numbers(part, path: path, grouping, limit: left)
      from = found.from
      if numbersOnly {
        for one in found.numbers { numbered[Cell(one.time, one.group), default: NumberCounts()].add(one.values) }
        left = Self.numbersMax - numbersSize
      } else {
        for one in found.numbers { counted[Cell(one.time, one.group), default: 0] += Self.further(one.values) }
      }
      return left > 0 && from == nil && counted.count < Self.cellsMax
    }
    if let from { reach.id = from }
    // It keeps as much as it may: what is before that is left out.
    if walk.share < 1, !reach.timeIsUp, let id = reach.id { reach.since = try await scan.receivedTime(from: id) }
    self.walk = walk
  }

  /// Reports that some rows are for beside themselves. - Parameter repeats: their `REPEAT_COUNT`.
  private static func further(_ repeats: NumberCounts) -> Int {
    zip(repeats.values, repeats.counts).reduce(0) { $0 + Int(max(1, min(weightMax, $1.0)) - 1) * Int($1.1) }
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
    _ filter: ReportFilter, _ grouping: ReportGrouping, _ figure: ReportCounting.Figure = .rows,
    within budget: Duration? = countBudget
  ) async throws(StoreFailure) -> (counts: [ReportCount], reach: Reach) {
    var counting = ReportCounting(filter, grouping, figure)
    repeat { try await counting.goOn(self, within: budget ?? Self.countBudget) } while budget == nil && counting.goesOn
    return (counting.counts, counting.reach)
  }
}
