import PrismBase

/// Reads windows of reports, from the newest on, until it has all or its time is up. So a question over more reports than can be
/// read in time is answered for the newest of them, and says so.
struct ReportScan: Sendable {
  /// How far a scan came.
  struct Reach: Sendable, Equatable {
    /// The time is up: reports received before this, milliseconds since 1970, were not read. nil: all were.
    var since: Int64?
    /// The lowest id that was read; nil: no id was.
    var id: Int64?

    static let whole = Reach()
  }

  static let budget: Duration = .milliseconds(700)

  let queries: any ReportQueries
  let time: any TimeSource
  var budget = Self.budget

  /// Calls `body` with the filter of each window until it returns false, or the time is up.
  func run(
    _ filter: ReportFilter, _ body: (ReportFilter) async throws(StoreFailure) -> Bool
  ) async throws(StoreFailure) -> Reach {
    let started = time.uptime
    var last: ClosedRange<Int64>?
    for window in try await queries.windows(filter) {
      if let last, time.uptime - started >= budget {
        let since = try await queries.receivedTime(from: last.lowerBound)
        return Reach(since: since, id: last.lowerBound)
      }
      var part = filter
      (part.after, part.before) = (window.lowerBound - 1, window.upperBound + 1)
      let goesOn = try await body(part)
      last = window
      if !goesOn { break }
    }
    return Reach(since: nil, id: last?.lowerBound)
  }

  /// Counts by time and group; those of one bucket and group are one.
  func counts(
    _ filter: ReportFilter, _ grouping: ReportGrouping
  ) async throws(StoreFailure) -> (counts: [ReportCount], reach: Reach) {
    struct Cell: Hashable { let time: Int64, group: String }
    var cells: [Cell: Int] = [:]
    let reach = try await run(filter) { (part) throws(StoreFailure) in
      for count in try await queries.counts(part, grouping) {
        cells[Cell(time: count.time, group: count.group), default: 0] += count.count
      }
      return true
    }
    let counts = cells.map { ReportCount(time: $0.key.time, group: $0.key.group, count: $0.value) }
    return (counts.sorted { ($0.time, $0.group) < ($1.time, $1.group) }, reach)
  }

  /// The most numbers that one question reads.
  static let numbersMax = 1_000_000

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping
  ) async throws(StoreFailure) -> (numbers: [ReportNumber], reach: Reach) {
    var numbers: [ReportNumber] = []
    var reach = try await run(filter) { (part) throws(StoreFailure) in
      numbers += try await queries.numbers(part, path: path, grouping, limit: Self.numbersMax - numbers.count)
      return numbers.count < Self.numbersMax
    }
    if numbers.count >= Self.numbersMax, let id = reach.id {
      reach.since = try await queries.receivedTime(from: id)
    }
    return (numbers, reach)
  }
}
