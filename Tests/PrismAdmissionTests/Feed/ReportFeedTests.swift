import PrismConfig
import PrismControl
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismAdmission

@Suite("The feed of reports")
struct ReportFeedTests {
  private let rig = DeliveryRig()

  private static func report(_ number: Int, type: String = "order", code: RefusalCode? = nil) -> TailReport {
    var report = TailReport()
    (report.time, report.outcome) = ("1970-01-01T00:00:00.000Z", code == nil ? "stored" : "refused")
    (report.namespace, report.type, report.reportId) = ("shop", type, "n-\(number)")
    report.code = code?.rawValue
    return report
  }

  @Test("a follower gets each report that is stored, with its id and sizes, and nothing of its content")
  func stored() async throws {
    let engine = try await rig.engine()
    let subscription = engine.feed.follow(.init(namespace: "shop"))
    await rig.report(0..<2, of: "scan", payload: [1, 2, 3], to: engine)
    for _ in 0..<2 {
      guard case .report(let report) = await subscription.next() else { throw Missing() }
      #expect(report.outcome == "stored" && report.type == "scan" && report.payloadBytes == 3)
      #expect(report.reportId?.utf8.count == RowID.reportIDBytes && report.metaBytes == 150)
      #expect(report.time.hasSuffix("Z"))
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
    let reports = [Self.report(0), Self.report(1, type: "pay"), Self.report(2, code: .unknownType)]
    feed.publish(reports, now: 0)
    feed.publish([Self.report(99, type: "pay", code: .busy)], now: 0)
    for number in numbers { #expect(await subscription.next() == .report(reports[number])) }
  }

  @Test("a reader that is behind misses reports, and gets their number in their place")
  func slowReader() async {
    let feed = ReportFeed()
    let subscription = feed.follow(.init())
    let room = FeedSubscription.itemsMax
    for number in 0..<(room + 500) { feed.publish([Self.report(number)], now: 0) }
    for number in 0..<room { #expect(await subscription.next() == .report(Self.report(number))) }
    feed.publish([Self.report(9999)], now: 0)
    #expect(await subscription.next() == .skipped(500))
    #expect(await subscription.next() == .report(Self.report(9999)))
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
    #expect(refused.map(\.code) == ["unknown_type", "bad_request"] && refused.allSatisfy(\.isRefused))
    #expect([refused[0].namespace, refused[0].type, refused[0].reportId] == ["shop", "what\n", "r"])
    #expect([refused[1].namespace, refused[1].type, refused[1].reportId] == [nil, nil, nil])
    #expect(conversation.takeRefused().isEmpty)
  }
}
