import PrismBase
import PrismHTTP
import PrismOutputs
import PrismProtocol

/// Reads windows of reports, until it has all or its time is up. Counts are whole but for stores that take very long; a search
/// answers soon with what it found, and says where it came to.
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

  /// Of a page, and of a count.
  static let (pageBudget, countBudget): (Duration, Duration) = (.milliseconds(700), .seconds(20))

  let queries: any ReportQueries
  let time: any TimeSource

  /// The windows of a question, in the order of reading, and how many of them are read.
  struct Walk: Sendable {
    let windows: [ClosedRange<Int64>]
    let isOldestFirst: Bool
    fileprivate(set) var read = 0

    /// The share that is read, about: windows have about as many reports. 1: all of them.
    var share: Double { read == windows.count ? 1 : Double(read) / Double(windows.count) }
  }

  func walk(
    _ filter: ReportFilter, countedBy grouping: ReportGrouping? = nil, oldestFirst: Bool = false
  ) async throws(StoreFailure) -> Walk {
    let windows = try await queries.windows(filter, grouping)
    return Walk(windows: oldestFirst ? windows.reversed() : windows, isOldestFirst: oldestFirst)
  }

  /// Calls `body` with the filter of each window until it returns false, or the time is up. The first window is always read,
  /// while there is a client that waits.
  func run(
    _ filter: ReportFilter, oldestFirst: Bool = false, within budget: Duration,
    _ body: (ReportFilter) async throws(StoreFailure) -> Bool
  ) async throws(StoreFailure) -> Reach {
    var walk = try await walk(filter, oldestFirst: oldestFirst)
    return try await goOn(&walk, filter, within: budget, body)
  }

  /// The same from the first window on that is not read.
  func goOn(
    _ walk: inout Walk, _ filter: ReportFilter, within budget: Duration,
    _ body: (ReportFilter) async throws(StoreFailure) -> Bool
  ) async throws(StoreFailure) -> Reach {
    let started = time.uptime
    var last: ClosedRange<Int64>?
    for ids in walk.windows[walk.read...] {
      if Task.isCancelled { throw .unavailable("the client has gone") }
      if let last, time.uptime - started >= budget {
        if walk.isOldestFirst { return Reach(since: nil, id: last.upperBound, timeIsUp: true) }
        return Reach(since: try await receivedTime(from: last.lowerBound), id: last.lowerBound, timeIsUp: true)
      }
      var wanted = filter
      (wanted.after, wanted.before) = (ids.lowerBound - 1, ids.upperBound + 1)
      guard try await body(wanted) else { return Reach(since: nil, id: ids.lowerBound) }
      walk.read += 1
      last = ids
    }
    return Reach(since: nil, id: last?.lowerBound)
  }

  /// An answer that is not whole always says so, even where the report is deleted meanwhile.
  func receivedTime(from id: Int64) async throws(StoreFailure) -> Int64 {
    try await queries.first(from: id)?.receivedTime ?? time.unixMilliseconds
  }

  /// The first reports of the filter, in its order; fewer where the time is up before.
  /// - Parameter read: of the store.
  func page(
    _ wanted: ReportFilter, within budget: Duration = pageBudget,
    _ read: (ReportFilter) async throws(StoreFailure) -> [StoredReport]
  ) async throws(StoreFailure) -> ReportPage {
    var page = ReportPage(limit: wanted.limit)
    page.reach = try await run(wanted, oldestFirst: !wanted.isNewestFirst, within: budget) {
      (part) throws(StoreFailure) in
      var part = part
      while !page.isCut {
        part.limit = wanted.limit - page.reports.count
        let found = try await read(part)
        page.add(found)
        guard let last = found.last, ReportPage.mayBeCut(found, limit: part.limit) else { break }
        if wanted.isNewestFirst { part.before = last.id } else { part.after = last.id }
      }
      return !page.isCut
    }
    return page
  }
}

/// Reports of one answer, and where the next one goes on.
struct ReportPage: Sendable {
  /// A page ends behind as many bytes of metas.
  static let bytesMax = 4 * 1_048_576

  private let limit: Int
  private(set) var reports: [StoredReport] = []
  private var bytes = 0
  var reach = ReportScan.Reach.whole

  init(limit: Int) { self.limit = limit }

  mutating func add(_ found: [StoredReport]) {
    reports += found
    bytes += Self.bytes(found)
  }

  /// It ends before the last report of its filter, as far as is known.
  var isCut: Bool { reports.count >= limit || bytes >= Self.bytesMax / 2 }

  /// A store ends its page behind some bytes, too: then there may be more in the same window.
  static func mayBeCut(_ found: [StoredReport], limit: Int) -> Bool {
    found.count >= limit || bytes(found) >= bytesMax / 2
  }

  private static func bytes(_ reports: [StoredReport]) -> Int { reports.reduce(0) { $0 + $1.meta.count } }

  /// The id that the next page begins behind; nil: this was the last one.
  var next: Int64? { isCut ? reports.last?.id : isPartial ? reach.id : nil }

  /// The time was up before as many reports were found as were wanted.
  var isPartial: Bool { reach.timeIsUp && !isCut }

  /// Of `GET /reports`. `next` is where a reader goes on: behind the last report, or behind those that were read in vain.
  var answer: HTTPResponse {
    let next = JSONValue(["next": next ?? reports.last?.id])
    return answer(isPartial ? next.adding(["partial": true]) : next)
  }

  /// - Parameter rest: the members behind the reports.
  func answer(_ rest: JSONValue) -> HTTPResponse {
    let texts = reports.map(\.jsonText).joined(separator: [UInt8(ascii: ",")])
    return .json(Array(#"{"reports":["#.utf8) + texts + Array("],".utf8) + rest.text.utf8.dropFirst())
  }
}

extension HTTPResponse {
  /// - Parameter text: JSON.
  static func json(_ text: [UInt8], headers: [(name: String, value: String)] = []) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: [("Content-Type", "application/json")] + headers, body: text + [UInt8(ascii: "\n")])
  }
}

extension StoredReport {
  /// - Throws: 404 for a report without one.
  func payloadAnswer(_ headers: [(name: String, value: String)] = []) throws(CollectorRefusal) -> HTTPResponse {
    guard let payload else { throw CollectorRefusal(404, "this report has no payload, or it is damaged") }
    return HTTPResponse(status: 200, headers: [("Content-Type", "application/octet-stream")] + headers, body: payload)
  }
}
