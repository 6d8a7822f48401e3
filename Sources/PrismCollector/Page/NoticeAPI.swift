import PrismBase
import PrismConfig
import PrismHTTP
import PrismProtocol

struct NoticeAPI: PageAnswers {
  let api: PageAPI

  private var collector: Collector { api.collector }
  private var store: NoticeStore { collector.access.page.notices }

  /// `GET /notices`: the newest first, those before `before`, of a state; with the receivers, and the numbers by state.
  func list(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let state = try request.word("state", Notice.State.self)
    guard let place = Self.place(request.http.parameter("before") ?? "") else {
      throw CollectorRefusal(400, "before: must be the `next` of the page before")
    }
    let (page, counts) = try await api.ask { () throws(StoreFailure) in
      (try await store.page(before: place.time, id: place.id, state: state, limit: limit), try await store.counts())
    }
    let next = page.count == limit ? page.last.map { "\($0.time)-\($0.id)" } : nil
    return PageAPI.json([
      "receivers": collector.options.notices.map { receiver in
        JSONValue([
          "name": receiver.name, "form": receiver.form.rawValue, "on": receiver.events.map(\.rawValue),
          "isSigned": receiver.secret != nil,
        ])
      },
      "counts": JSONValue.object(Notice.State.allCases.map { .init($0.rawValue, .int(counts[$0] ?? 0)) }),
      "notices": page.map(\.shown), "next": next,
    ])
  }

  /// `TIME-ID` or `TIME`; nil: it is neither. Without a text all notices are behind it.
  private static func place(_ text: String) -> (time: Int64, id: String)? {
    guard !text.isEmpty else { return (.max, "") }
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts[0].allSatisfy({ $0.isASCII && $0.isNumber }), let time = Int64(parts[0]) else {
      return nil
    }
    guard parts.count == 2 else { return (time, "~") }
    let isID = parts[1].utf8.count == 16 && parts[1].utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    return isID ? (time, String(parts[1])) : nil
  }

  /// `POST /notices/test` with `{"receiver": …}`: a notice that says that it is a test, delivered as any other.
  func test(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let name = try PageAPI.body(request, known: ["receiver": .text])["receiver"]?.string ?? ""
    guard collector.options.notices.contains(where: { $0.name == name }) else {
      throw .unknown("receiver", among: collector.options.notices.map(\.name))
    }
    let now = collector.time.unixMilliseconds
    let notice = Notice(
      nil, to: name, key: "\(now) \(UInt64.random(in: 0...UInt64.max))", time: now, title: "A test of prism-collector",
      items: [])
    try await api.ask { () throws(StoreFailure) in try await store.add(notice) }
    api.note(request, did: "tested a receiver of notices", to: name)
    return PageAPI.json(of: notice.shown)
  }

  /// `POST /notices/{id}` with `{"action": "send"}` or `{"action": "drop"}`.
  func change(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let action = try PageAPI.body(request, known: ["action": .text])["action"]?.string ?? ""
    guard ["send", "drop"].contains(action) else { throw CollectorRefusal(400, "action: must be send or drop") }
    let (id, now, receivers) = (request.parts.first ?? "", collector.time.unixMilliseconds, collector.options.notices)
    let isChanged = try await api.ask { () throws(StoreFailure) in
      action == "send"
        ? try await store.send(id, among: receivers.map(\.name), now: now) : try await store.drop(id)
    }
    let hint = action == "send" ? ", or its receiver is not among those of the configuration" : ""
    guard isChanged else { throw CollectorRefusal(404, "there is no such notice that could be changed so\(hint)") }
    api.note(request, did: "notice: \(action)", to: id)
    return PageAPI.json(["id": id, "action": action])
  }
}
