import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Notices are delivered", .serialized, .timeLimit(.minutes(3)))
struct NoticeSenderTests {
  private static func notice(_ key: String = "1", to receiver: String = "ops") -> Notice {
    Notice(
      .newGroup, to: receiver, key: key, time: 1_700_000_000_000, title: "2 <new> crashes & more", count: 2,
      items: [.init("SIGSEGV in pay\u{202E}", object: "0123456789abcdef")])
  }

  private static func sent(_ rig: NoticeRig, _ receiver: CollectorConfiguration.Notice) async throws -> Notice {
    _ = try await NoticeSender(receiver, rig.collector).send()
    return try #require(try await rig.notices().first)
  }

  @Test("a request has the notice and its id, and a code over the time and the body by the secret")
  func signed() async throws {
    let server = try NoticeReceiver()
    var receiver = NoticeRig.receiver(server.url)
    receiver.secret = HeldFile(path: "/x", content: Secret(Array("our secret".utf8)))
    let rig = try NoticeRig([receiver])
    try await rig.add(Self.notice())
    let notice = try await Self.sent(rig, receiver)
    #expect(notice.state == .delivered && notice.attempts == 1 && notice.result == "status 200")
    let request = try #require(server.requests.first)
    #expect(server.requests.count == 1 && request.id == notice.id && request.body["title"] == "2 <new> crashes & more")
    #expect(request.body["items"]?.array?.first?["text"] == "SIGSEGV in pay\\u{202e}")
    let seconds = rig.rig.time.unixMilliseconds / 1000
    let code = try Hashing.hmacSHA256(
      key: Secret(Array("our secret".utf8)), Array("\(seconds).".utf8) + request.bytes)
    #expect(request.signature == "t=\(seconds),v1=\(Hex.encode(code))")
    #expect(try await Self.sent(rig, receiver) == notice)
    #expect(server.requests.count == 1)
    await server.stop()
  }

  @Test(
    "the receiver's answer decides: it has it, it will not have it, or it is asked again later",
    arguments: [
      (200, Notice.State.delivered), (204, .delivered), (302, .dead), (400, .dead), (404, .dead), (410, .dead),
      (408, .waiting), (429, .waiting), (500, .waiting), (503, .waiting),
    ])
  func answers(status: Int, state: Notice.State) async throws {
    let server = try NoticeReceiver()
    server.answer(status)
    let receiver = NoticeRig.receiver(server.url)
    let rig = try NoticeRig([receiver])
    try await rig.add(Self.notice())
    let notice = try await Self.sent(rig, receiver)
    #expect(notice.state == state && notice.result == "status \(status)")
    #expect(server.requests.map(\.path) == ["/hook"], "no redirect is followed")
    if state == .waiting {
      #expect(try await Self.sent(rig, receiver).attempts == 1, "it is not due yet")
      server.answer(200)
      rig.rig.time.advance(by: .milliseconds(NoticeSender.backoff(1)))
      #expect(try await Self.sent(rig, receiver).state == .delivered)
    }
    await server.stop()
  }

  @Test("the status decides, also where its body does not end") func cutBody() async throws {
    let server = try HTTPServer(
      listener: ListeningSocket(address: "127.0.0.1:0"), options: .init(), gate: { _ in .take() },
      handler: { _ in
        var answer = HTTPResponse(status: 200)
        answer.stream = HTTPStream(byteCount: 100) { _ in nil }
        return answer
      })
    let receiver = NoticeRig.receiver("http://127.0.0.1:\(server.port)")
    let rig = try NoticeRig([receiver])
    try await rig.add(Self.notice())
    let notice = try await Self.sent(rig, receiver)
    #expect(notice.state == .delivered && notice.attempts == 1)
    await server.stop()
  }

  @Test(
    "a receiver that is away is tried less and less often, and then the notice is a dead letter, which can be sent again"
  )
  func away() async throws {
    let server = try NoticeReceiver()
    let secret = "services-T0-B0-secret"
    let receiver = NoticeRig.receiver(
      server.url.replacing("http://", with: "http://u:\(secret)@") + "/\(secret)?k=\(secret)")
    await server.stop()
    let rig = try NoticeRig([receiver])
    try await rig.add(Self.notice())
    for attempt in 1...NoticeSender.attemptsMax {
      let notice = try await Self.sent(rig, receiver)
      let result = try #require(notice.result)
      #expect(notice.attempts == attempt && result.hasPrefix("http://127.0.0.1:"))
      #expect(!result.contains(secret), "a viewer must not be able to post as the collector")
      #expect(notice.state == (attempt < NoticeSender.attemptsMax ? .waiting : .dead))
      rig.rig.time.advance(by: .milliseconds(NoticeSender.backoff(attempt)))
    }
    #expect(try await Self.sent(rig, receiver).attempts == NoticeSender.attemptsMax)
    #expect(rig.rig.logged.contains { $0.contains("dead letter") })
    #expect(!rig.rig.logged.contains { $0.contains(secret) })
    let id = Self.notice().id
    #expect(try await rig.ask(.post, "/notices/\(id)", [], #"{"action":"send"}"#).status == 200)
    #expect(try await Self.sent(rig, receiver).attempts == 1)
    #expect(try await rig.ask(.post, "/notices/\(id)", [], #"{"action":"drop"}"#).status == 200)
    #expect(try await rig.notices().first?.state == .dropped)
  }

  @Test("notices of a receiver that is not configured any more are dead letters after a day, and are not sent again")
  func removed() async throws {
    let rig = try NoticeRig([NoticeRig.receiver(name: "left")])
    try await rig.add(Self.notice(to: "gone"))
    try await rig.look()
    #expect(try await rig.notices().map(\.state) == [.waiting], "another replica may have it")
    rig.rig.time.advance(by: .seconds(25 * 3600))
    try await rig.look()
    let notice = try #require(try await rig.notices().first)
    #expect(notice.state == .dead && notice.result?.contains("not configured") == true)
    let path = "/notices/\(notice.id)"
    #expect(try await rig.ask(.post, path, [], #"{"action":"send"}"#).status == 404)
    #expect(try await rig.ask(.post, path, [], #"{"action":"drop"}"#).status == 200)
  }

  @Test(
    "the time between attempts", arguments: [(1, 5000), (2, 10_000), (5, 80_000), (11, 3_600_000), (1000, 3_600_000)])
  func backoff(attempts: Int, milliseconds: Int64) { #expect(NoticeSender.backoff(attempts) == milliseconds) }

  @Test("a receiver that never answers holds up no other, and its attempt ends")
  func slow() async throws {
    // The kernel takes connections, and nothing reads from them.
    let (slow, quick) = (try ListeningSocket(address: "127.0.0.1:0"), try NoticeReceiver())
    let receivers = [
      NoticeRig.receiver("http://127.0.0.1:\(slow.port)/", name: "slow"), NoticeRig.receiver(quick.url, name: "quick"),
    ]
    let rig = try NoticeRig(receivers)
    for receiver in receivers { try await rig.add(Self.notice(to: receiver.name)) }
    let (first, second) = (NoticeSender(receivers[0], rig.collector), NoticeSender(receivers[1], rig.collector))
    async let isMoreDue = first.send()
    _ = try await second.send()
    #expect(quick.requests.count == 1)
    _ = try await isMoreDue
    let notice = try #require(try await rig.notices(.waiting).first)
    #expect(notice.receiver == "slow" && notice.attempts == 1 && notice.result?.isEmpty == false)
    await quick.stop()
  }

  @Test("an attempt whose end is not known is made again, under the same id")
  func unknownEnd() async throws {
    let server = try NoticeReceiver()
    let receiver = NoticeRig.receiver(server.url)
    let rig = try NoticeRig([receiver])
    try await rig.add(Self.notice())
    // The collector that began it was killed.
    let now = rig.rig.time.unixMilliseconds
    #expect(try await rig.collector.access.page.notices.claim(Self.notice(), until: now + 60_000))
    #expect(try await Self.sent(rig, receiver).state == .waiting)
    rig.rig.time.advance(by: .seconds(60))
    let notice = try await Self.sent(rig, receiver)
    #expect(notice.state == .delivered && notice.attempts == 2 && server.requests.map(\.id) == [notice.id])
    // A clock that went back far holds nothing up.
    try await rig.add(Self.notice("2"))
    rig.rig.time.stepWallClock(milliseconds: -400 * 86_400_000)
    _ = try await NoticeSender(receiver, rig.collector).send()
    #expect(server.requests.count == 2)
    await server.stop()
  }

  @Test("Slack and Alertmanager get their own forms")
  func forms() throws {
    var receiver = NoticeRig.receiver()
    receiver.form = .slack
    let slack = try JSONValue(parsing: NoticeRequest(Self.notice(), to: receiver, now: 1000).body)
    let bullet = "\u{2022} SIGSEGV in pay\\u{202e} (0123456789abcdef)"
    #expect(slack["text"]?.string == "2 &lt;new&gt; crashes &amp; more\n\(bullet)\n\u{2022} and 1 more")
    receiver.form = .alertmanager
    let alert = try JSONValue(parsing: NoticeRequest(Self.notice(), to: receiver, now: 1000).body).array?.first
    #expect(alert?["labels"]?["alertname"] == "PrismNewGroup" && alert?["startsAt"] == "2023-11-14T22:13:20.000Z")
    #expect(alert?["annotations"]?["summary"] == "2 <new> crashes & more")
    let count = Notice(.count, to: "ops", key: "1", time: 1, title: "7 reports", count: 7, items: [])
    let described = try JSONValue(parsing: NoticeRequest(count, to: receiver, now: 1000).body).array?.first
    #expect(described?["annotations"]?["description"] == "")
  }

  @Test("operators list, test, send and drop over the API; wrong words are refused")
  func api() async throws {
    let server = try NoticeReceiver()
    let receiver = NoticeRig.receiver(server.url)
    let rig = try NoticeRig([receiver])
    #expect(try await rig.ask(.post, "/notices/test", [], #"{"receiver":"ops"}"#).json["event"] == "test")
    #expect(try await rig.ask(.post, "/notices/test", [], #"{"receiver":"no"}"#).status == 404)
    #expect(try await Self.sent(rig, receiver).state == .delivered)
    for key in 0..<5 { try await rig.add(Self.notice("\(key)")) }
    var (before, seen) = ("", [String]())
    while true {
      let page = try await rig.ask(.get, "/notices", [("limit", "2"), ("before", before)]).json
      #expect(page["counts"]?["waiting"] == 5 && page["counts"]?["delivered"] == 1)
      seen += (page["notices"]?.array ?? []).compactMap { $0["id"]?.string }
      guard let next = page["next"]?.string else { break }
      before = next
    }
    #expect(seen.count == 6 && Set(seen).count == 6)
    #expect(try await rig.ask(.get, "/notices", [("state", "waiting")]).json["notices"]?.array?.count == 5)
    #expect(try await rig.ask(.get, "/notices", [("before", "x")]).status == 400)
    #expect(try await rig.ask(.get, "/notices", [("state", "x")]).status == 400)
    #expect(try await rig.ask(.post, "/notices/0000000000000000", [], #"{"action":"drop"}"#).status == 404)
    #expect(try await rig.ask(.post, "/notices/\(seen[0])", [], #"{"action":"x"}"#).status == 400)
    await server.stop()
  }
}
