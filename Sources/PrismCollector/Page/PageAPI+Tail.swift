import PrismBase
import PrismHTTP
import PrismOutputs

// The live tail: server-sent events (HTML's standard, "Server-sent events").
extension PageAPI {
  /// Of one answer, so at most a hundred events a second reach a reader.
  private static let tailEventsMax = 50
  /// Ids that one poll goes back: a filter that matches little reads all of them.
  private static let tailIDsMax: Int64 = 20_000
  private static let tailPolls = 20
  private static let tailInterval: Duration = .milliseconds(500)

  /// `GET /tail`: the answer ends with its first events, or after 10 s. A browser asks again by itself, with the last id.
  func tail(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    var wanted = try ReportFilter(request)
    (wanted.isNewestFirst, wanted.limit, wanted.after) = (true, Self.tailEventsMax, 0)
    let given = request.http.header("last-event-id") ?? request.http.parameter("after")
    let last = given.flatMap { Int64($0) }
    return try await collector.access.page.tailing.run { () throws(CollectorRefusal) in
      try await tail(wanted, after: last)
    }
  }

  private func tail(_ wanted: ReportFilter, after last: Int64?) async throws(CollectorRefusal) -> HTTPResponse {
    var (cursor, edge) = (last ?? .max, Int64(0))
    for _ in 0..<Self.tailPolls where !collector.access.page.tailing.isClosed {
      let poll = try await poll(wanted)
      cursor = min(cursor, poll.newest)
      let page = poll.events.filter { $0.id > cursor }
      if !page.isEmpty {
        let isSkipping = cursor > 0 && cursor < poll.since
        return Self.answer(page, isCut: isSkipping || page.count == Self.tailEventsMax, from: cursor)
      }
      (cursor, edge) = (poll.newest, poll.edge)
      do { try await collector.time.sleep(for: Self.tailInterval) } catch { break }  // the collector stops
    }
    return Self.answer([], isCut: false, from: edge)
  }

  /// The newest reports of a filter. Of those behind the poll before, at most the last `tailIDsMax` ids are read.
  private func poll(_ wanted: ReportFilter) async throws(CollectorRefusal) -> TailPolls.Poll {
    let (queries, store) = (scan.queries, collector.store)
    return try await collector.access.page.tails.poll(wanted) { before in
      do throws(CollectorRefusal) {
        let newest = try await ask { () throws(StoreFailure) in try await queries.newestID() }
        guard newest > before.newest else { return .success(before) }
        var part = wanted
        let first = newest - Self.tailIDsMax
        (part.after, part.before) = (max(before.newest, first), newest + 1)
        let (wanted, since) = (part, before.newest > 0 && before.newest >= first ? before.since : max(0, first))
        let found = try await ask { () throws(StoreFailure) in try await store.page(wanted) }
        let events = found.map { TailPolls.Event($0) } + before.events
        return .success(.init(newest: newest, since: since, events: Array(events.prefix(Self.tailEventsMax))))
      } catch { return .failure(error) }
    }
  }

  /// - Parameter isCut: there may be more than these.
  private static func answer(_ page: [TailPolls.Event], isCut: Bool, from cursor: Int64) -> HTTPResponse {
    var body = Array("retry: 300\n\n".utf8)
    if isCut { body += Array("event: cut\ndata: {}\n\n".utf8) }
    for event in page.reversed() { body += event.text }
    if page.isEmpty { body += Array("id: \(cursor)\nevent: idle\ndata: {}\n\n".utf8) }
    return HTTPResponse(status: 200, headers: [("Content-Type", "text/event-stream")], body: body)
  }
}

/// The newest reports for live tails. Tails with one filter share each poll of the store, so thirty of them cost as one.
actor TailPolls {
  nonisolated let gate = ReadGate(countMax: 64, "64 live tails are open; close one", retryAfterSeconds: 5)

  struct Poll: Sendable {
    /// The newest id of the store. No answer has it: it counts all namespaces.
    var newest: Int64 = 0
    /// Ids up to this one were not read.
    var since: Int64 = 0
    /// Of the filter, newest first, at most as many as one answer has.
    var events: [Event] = []
    /// The id that a reader without news goes on behind: of its filter's newest report; 0: there is no such report.
    var edge: Int64 { events.first?.id ?? 0 }
  }

  /// A report as each tail sends it.
  struct Event: Sendable {
    let id: Int64
    let text: [UInt8]

    init(_ report: StoredReport) {
      id = report.id
      // JSON text has no line feed of its own but between its members, and a meta may have those.
      let line = report.jsonText.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
      text = Array("id: \(id)\nevent: report\ndata: ".utf8) + line + Array("\n\n".utf8)
    }
  }

  private struct Entry {
    let filter: ReportFilter
    var poll = Poll()
    /// Of the last poll, in uptime; nil: there was no poll yet.
    var time: Duration?
    var reading: Reading?
  }

  /// A poll that is made now, and how long it takes.
  private typealias Reading = Task<(poll: Result<Poll, CollectorRefusal>, lasts: Duration), Never>

  /// Polls of one filter are at least this far apart.
  static let interval: Duration = .milliseconds(250)
  /// After a poll all wait for nine times as long as it took. So all tails together take a tenth of one core's time.
  static let restFactor = 9
  private static let longestRest: Duration = .seconds(10)
  private static let forgottenAfter: Duration = .seconds(30)
  /// Past it the poll that is the oldest is forgotten: its tail reads the last ids again.
  static let filtersMax = 64

  private let time: any TimeSource
  /// One a filter.
  private var entries: [Entry] = []
  /// No poll begins before, in uptime.
  private var restsUntil: Duration = .zero
  /// Polls are made one after the other.
  private var last: Reading?

  init(time: any TimeSource) { self.time = time }

  /// - Parameter read: makes a poll out of the one before.
  /// - Returns: the one before where it is not time for another one.
  func poll(
    _ filter: ReportFilter, _ read: @escaping @Sendable (Poll) async -> Result<Poll, CollectorRefusal>
  ) async throws(CollectorRefusal) -> Poll {
    let now = time.uptime
    entries.removeAll { $0.reading == nil && now - ($0.time ?? now) > Self.forgottenAfter }
    var place = entries.firstIndex { $0.filter == filter } ?? entries.count
    if place == entries.count {
      makeRoom()
      place = entries.count
      entries.append(Entry(filter: filter))
    }
    let entry = entries[place]
    if let reading = entry.reading { return try await reading.value.poll.get() }
    if let time = entry.time, now < max(restsUntil, time + Self.interval) { return entry.poll }
    let reading = Task(executorPreference: BackgroundExecutor.shared) { [last, time] in
      _ = await last?.value
      let began = time.uptime
      return (poll: await read(entry.poll), lasts: time.uptime - began)
    }
    (entries[place].reading, entries[place].time, last) = (reading, now, reading)
    let (result, lasted) = await reading.value
    let ended = time.uptime
    restsUntil = min(max(restsUntil, ended) + lasted * Self.restFactor, ended + Self.longestRest)
    if let place = entries.firstIndex(where: { $0.filter == filter }) {
      entries[place].reading = nil
      if case .success(let poll) = result { entries[place].poll = poll }
    }
    return try result.get()
  }

  /// Polls that are read now stay: each has a tail, and those are bounded.
  private func makeRoom() {
    guard entries.count >= Self.filtersMax else { return }
    let idle = entries.indices.filter { entries[$0].reading == nil }
    if let oldest = idle.min(by: { (entries[$0].time ?? .zero) < (entries[$1].time ?? .zero) }) {
      entries.remove(at: oldest)
    }
  }
}
