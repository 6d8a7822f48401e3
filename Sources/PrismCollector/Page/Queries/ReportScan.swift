import PrismBase

/// Reads windows of reports, from the newest on, until it has all or its time is up. So a question over more reports than can be
/// read in time is answered for the newest of them, and says so.
struct ReportScan: Sendable {
  /// How far a scan came.
  struct Reach: Sendable, Equatable {
    /// The time is up: reports received before this, milliseconds since 1970, were not read. nil: all were.
    var since: Int64?
    /// The last id that was read, in the order of reading; nil: no id was.
    var id: Int64?
    var timeIsUp = false

    static let whole = Reach()
  }

  static let budget: Duration = .milliseconds(700)

  let queries: any ReportQueries
  let time: any TimeSource
  var budget = Self.budget

  /// Calls `body` with the filter of each part until it returns false, or the time is up.
  func run(
    _ filter: ReportFilter, oldestFirst: Bool = false, _ body: (ReportFilter) async throws(StoreFailure) -> Bool
  ) async throws(StoreFailure) -> Reach {
    let started = time.uptime
    var pace = ScanPace()
    var last: ClosedRange<Int64>?
    let windows = try await queries.windows(filter)
    for window in oldestFirst ? windows.reversed() : windows {
      var open: ClosedRange<Int64>? = window
      while let ids = open {
        let left = budget - (time.uptime - started)
        if let last, left <= .zero {
          if oldestFirst { return Reach(since: nil, id: last.upperBound, timeIsUp: true) }
          return Reach(since: try await receivedTime(from: last.lowerBound), id: last.lowerBound, timeIsUp: true)
        }
        let part = pace.part(of: ids, within: left, oldestFirst: oldestFirst)
        var wanted = filter
        (wanted.after, wanted.before) = (part.ids.lowerBound - 1, part.ids.upperBound + 1)
        let begun = time.uptime
        let goesOn = try await body(wanted)
        pace.note(part.ids, lasted: time.uptime - begun)
        (last, open) = (part.ids, part.rest)
        if !goesOn { return Reach(since: nil, id: part.ids.lowerBound) }
      }
    }
    return Reach(since: nil, id: last?.lowerBound)
  }

  /// An answer that is not whole always says so, even where the report is deleted meanwhile.
  private func receivedTime(from id: Int64) async throws(StoreFailure) -> Int64 {
    try await queries.receivedTime(from: id) ?? time.unixMilliseconds
  }

  /// The first reports of the filter, in its order; fewer where the time is up before.
  func page(_ wanted: ReportFilter, of store: any PacketStore) async throws(StoreFailure) -> ReportPage {
    var page = ReportPage(limit: wanted.limit)
    page.reach = try await run(wanted, oldestFirst: !wanted.isNewestFirst) { (part) throws(StoreFailure) in
      var part = part
      while !page.isCut {
        part.limit = wanted.limit - page.reports.count
        let found = try await store.page(part)
        page.add(found)
        guard let last = found.last, ReportPage.mayBeCut(found, limit: part.limit) else { break }
        if wanted.isNewestFirst { part.before = last.id } else { part.after = last.id }
      }
      return !page.isCut
    }
    return page
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
    if numbers.count >= Self.numbersMax, let id = reach.id { reach.since = try await receivedTime(from: id) }
    return (numbers, reach)
  }
}
