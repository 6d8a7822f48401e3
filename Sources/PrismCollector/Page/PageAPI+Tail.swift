import PrismBase
import PrismHTTP
import PrismProtocol

// The live tail: server-sent events (HTML's standard, "Server-sent events").
extension PageAPI {
  /// Of one answer, so at most a hundred events a second reach a reader.
  private static let tailEventsMax = 50
  /// Ids that one look goes back: a filter that matches little reads all of them.
  private static let tailIDsMax: Int64 = 20_000
  private static let tailPolls = 20
  private static let tailInterval: Duration = .milliseconds(500)

  /// `GET /tail`: the answer ends with its first events, or after 10 s. A browser asks again by itself, with the last id.
  func tail(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    var wanted = try filter(request)
    (wanted.isNewestFirst, wanted.limit, wanted.after) = (true, Self.tailEventsMax, 0)
    let given = request.http.header("last-event-id") ?? request.http.parameter("after")
    let last = given.flatMap { Int64($0) }
    return try await collector.access.page.tail { () throws(CollectorRefusal) in
      try await tail(wanted, after: last)
    }
  }

  private func tail(_ wanted: ReportFilter, after last: Int64?) async throws(CollectorRefusal) -> HTTPResponse {
    var cursor = last ?? .max
    for _ in 0..<Self.tailPolls where !collector.access.page.isClosed {
      let look = try await look(wanted)
      cursor = min(cursor, look.newest)
      let isSkipping = look.newest - cursor > Self.tailIDsMax
      let page = look.events.filter { $0.id > cursor }
      if !page.isEmpty {
        return Self.answer(page, isCut: isSkipping || page.count == Self.tailEventsMax, from: cursor)
      }
      cursor = look.newest
      do { try await collector.time.sleep(for: Self.tailInterval) } catch { break }  // the collector stops
    }
    return Self.answer([], isCut: false, from: cursor == .max ? 0 : cursor)
  }

  /// The newest reports of a filter. Of those behind the look before, at most the last `tailIDsMax` ids are read.
  private func look(_ wanted: ReportFilter) async throws(CollectorRefusal) -> TailLooks.Look {
    let (queries, store) = (try scan.queries, collector.store)
    return try await collector.access.page.tails.look(wanted) { before in
      do throws(CollectorRefusal) {
        let newest = try await ask { () throws(StoreFailure) in try await queries.newestID() }
        guard newest > before.newest else { return .success(before) }
        var part = wanted
        (part.after, part.before) = (max(before.newest, newest - Self.tailIDsMax), newest + 1)
        let wanted = part
        let found = try await ask { () throws(StoreFailure) in try await store.page(wanted) }
        let events = found.map { TailLooks.Event($0) } + before.events
        return .success(TailLooks.Look(newest: newest, events: Array(events.prefix(Self.tailEventsMax))))
      } catch { return .failure(error) }
    }
  }

  /// - Parameter isCut: there may be more than these.
  private static func answer(_ page: [TailLooks.Event], isCut: Bool, from cursor: Int64) -> HTTPResponse {
    var body = Array("retry: 300\n\n".utf8)
    if isCut { body += Array("event: cut\ndata: {}\n\n".utf8) }
    for event in page.reversed() { body += event.text }
    if page.isEmpty { body += Array("id: \(cursor)\nevent: idle\ndata: {}\n\n".utf8) }
    return HTTPResponse(status: 200, headers: [("Content-Type", "text/event-stream")], body: body)
  }
}
