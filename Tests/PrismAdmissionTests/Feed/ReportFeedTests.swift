import PrismConfig
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismAdmission

@Suite("The feed of reports")
struct ReportFeedTests {
  private let rig = DeliveryRig()

  private static func event(_ number: Int, type: String = "order", code: RefusalCode? = nil) -> ReportEvent {
    ReportEvent(
      time: Int64(number), outcome: code.map { .refused($0) } ?? .stored,
      name: ReportName(namespace: "shop", type: type, reportID: "n-\(number)"))
  }

  @Test("a follower gets each report that is stored, with its id and sizes, and nothing of its content")
  func stored() async throws {
    let engine = try await rig.engine()
    let subscription = engine.feed.follow(.init(namespace: "shop"))
    await rig.report(0..<2, of: "scan", payload: [1, 2, 3], to: engine)
    for _ in 0..<2 {
      guard case .report(let event) = await subscription.next() else { throw Missing() }
      #expect(event.outcome == .stored && event.name.type == "scan" && event.payloadBytes == 3)
      #expect(event.name.reportID?.utf8.count == RowID.reportIDBytes && event.metaBytes == 150)
    }
    await engine.stop()
  }
  private struct Missing: Error {}

  @Test(
    "a follower sees what it asked for, and no more",
    arguments: [
      (ReportFeed.Filter(), [0, 1, 2]), (.init(namespace: "other"), []), (.init(type: "pay"), [1]),
      (.init(isRefusedOnly: true), [2]),
    ])
  func filters(filter: ReportFeed.Filter, numbers: [Int]) async {
    let feed = ReportFeed()
    let subscription = feed.follow(filter)
    feed.publish([Self.event(0), Self.event(1, type: "pay"), Self.event(2, code: .unknownType)])
    let end = Self.event(99, type: "pay", code: .busy)
    feed.publish([ReportEvent(time: 99, outcome: end.outcome, name: end.name)])
    var seen: [Int] = []
    for _ in numbers { if case .report(let event) = await subscription.next() { seen.append(Int(event.time)) } }
    #expect(seen == numbers)
  }

  @Test("a reader that is behind misses reports, and gets their number in their place")
  func slowReader() async {
    let feed = ReportFeed()
    let subscription = feed.follow(.init())
    let room = Follower.itemsMax
    for number in 0..<(room + 500) { feed.publish([Self.event(number)]) }
    for number in 0..<room { #expect(await subscription.next() == .report(Self.event(number))) }
    feed.publish([Self.event(9999)])
    #expect(await subscription.next() == .skipped(500))
    #expect(await subscription.next() == .report(Self.event(9999)))
  }

  @Test("letting go of the subscription, or cancelling its reader, ends it; then there is no follower")
  func ending() async {
    let feed = ReportFeed()
    #expect(!feed.hasFollowers)
    var subscription: FeedSubscription? = feed.follow(.init())
    #expect(feed.hasFollowers)
    let reader = Task { [subscription] in await subscription?.next() }
    reader.cancel()
    #expect(await reader.value == .some(nil))
    subscription = nil
    #expect(!feed.hasFollowers)
  }

  @Test("a refused report is kept under its own words only while somebody follows", arguments: [false, true])
  func refused(isFollowed: Bool) {
    let rules = AdmissionRules(DeliveryRig.snapshot())
    let peer = ReportingPeer(userID: 1, groupIDs: [], processID: 1)
    let session = Session(
      rules: rules, host: HostFacts(deviceID: "d", systemVersion: "Linux"), peer: peer, sessionID: "s")
    var conversation = IngestConversation(session: session, version: "1")
    conversation.isFollowed = isFollowed
    let line = Array((#"{"namespace":"shop","type":"what\n","meta":{"a":1},"reportId":"r"}"# + "\nnonsense\n").utf8)
    var turn = WorkTurn.unbounded
    _ = conversation.consume(line.span, within: &turn, unixMilliseconds: 0)
    let refused = conversation.takeRefused()
    #expect(conversation.takeTally().refused.values.reduce(0, +) == 2)
    guard isFollowed else { return #expect(refused.isEmpty) }
    #expect(refused.map(\.code) == [.unknownType, .badRequest])
    #expect(refused[0].name == ReportName(namespace: "shop", type: "what\n", reportID: "r"))
    #expect(refused[1].name == ReportName(namespace: nil, type: nil, reportID: nil))
    #expect(conversation.takeRefused().isEmpty)
  }
}
