import PrismAdmission
import PrismConfig
import PrismProtocol
import Testing

@Suite("Mending: a record that is too large for a meta") struct MendingTests {
  private static let bodyMax = 1024 * 1024

  /// A report of the members as it is stored.
  private static func stored(
    _ members: String, payload: [UInt8]? = nil, isUploaded: Bool = false
  ) throws -> (meta: JSONValue, payload: [UInt8]?) {
    var mending = Mending()
    mending.cuts = true
    let source = SubmissionSource(peer: AdmissionSupport.peer, mending: mending, sessionID: "s")
    let report = Submission(
      "order", in: "shop", members: Array(members.utf8).span, payload: payload, from: source)
    return try stored(report, isUploaded: isUploaded)
  }

  private static func stored(
    _ report: Submission, isUploaded: Bool
  ) throws -> (meta: JSONValue, payload: [UInt8]?) {
    let snapshot = AdmissionSupport.snapshot {
      let order = MonitoredType(ReportType("order")!, isUploadPayload: isUploaded)
      $0.namespaces[AdmissionSupport.shop]?.monitorList = [order]
      $0.namespaces[AdmissionSupport.shop]?.maxBodyBytes = bodyMax
    }
    var group = SubmittedGroup(SubmissionGroup([report], userID: 1, isReserved: true))
    var turn = WorkTurn.unbounded
    let isDone = group.admit(
      within: &turn, AdmissionRules(snapshot), AdmissionSupport.facts, unixMilliseconds: AdmissionSupport.now)
    #expect(isDone && group.takeTally().refused == [:])
    var store = CommittingStore()
    store.commit(group.takeCommit()?.batches ?? [])
    return try #require(try store.reports.first)
  }

  @Test(
    "its short fields stay at any size, and each byte that is left out has a number",
    arguments: [20_000, 300_000, bodyMax, bodyMax + 1, 5_000_000], [true, false])
  func longText(bytes: Int, isUploaded: Bool) throws {
    let text = String(repeating: "x", count: bytes)
    let (meta, payload) = try Self.stored(
      #""level":"error","log":"\#(text)","trace":{"id":"abc"},"n":1"#, isUploaded: isUploaded)
    #expect(meta["level"] == "error" && meta["trace"]?["id"] == "abc" && meta["n"] == 1)
    let kept = try #require(meta["log"]?.string)
    #expect(kept.utf8.count > 8000 && text.hasPrefix(kept))
    #expect(meta["TRUNCATED"]?.int == bytes - kept.utf8.count)
    #expect(meta["PAYLOAD_FIELD"]?.string == (isUploaded ? "log" : nil))
    #expect(payload?.count == (isUploaded && bytes <= Self.bodyMax ? bytes : nil))
    #expect(meta["PAYLOAD_LEFT_OUT"]?.int == (isUploaded && bytes > Self.bodyMax ? bytes : nil))
  }

  @Test(
    "its short fields stay, also if another thing than a text is long",
    arguments: [
      #""list":[\#(Array(repeating: "1234", count: 100_000).joined(separator: ","))]"#,
      #""a":[\#(Array(repeating: #"{"c":"\#(String(repeating: "é", count: 9000))"}"#, count: 60).joined(separator: ","))]"#,
      (0..<60).map { #""k\#($0)":"\#(String(repeating: #"\n\u0001😀"#, count: 900))""# }.joined(separator: ","),
      #""\#(String(repeating: "k", count: 400_000))":1"#,
      #""a":{"\#(String(repeating: "k", count: 400_000))":1}"#,
    ])
  func longOther(members: String) throws {
    let (meta, payload) = try Self.stored(#""level":"error",\#(members),"n":1"#, isUploaded: true)
    #expect(meta["level"] == "error" && meta["n"] == 1)
    #expect(meta["TRUNCATED"]?.int ?? 0 > members.utf8.count / 3)
    let left = meta["PAYLOAD_LEFT_OUT"]?.int
    #expect((payload?.count ?? left ?? 0) > members.utf8.count)
  }

  @Test("its binary field over the limit costs itself only", arguments: [bodyMax, bodyMax + 1], [20, 300_000])
  func largePayload(bytes: Int, textBytes: Int) throws {
    let members = #""level":"error","log":"\#(String(repeating: "x", count: textBytes))""#
    let (meta, payload) = try Self.stored(
      members, payload: [UInt8](repeating: 7, count: bytes), isUploaded: true)
    #expect(meta["level"] == "error" && (meta["TRUNCATED"] != nil) == (textBytes > 20))
    #expect(payload?.count == (bytes > Self.bodyMax ? nil : bytes))
    #expect(meta["PAYLOAD_LEFT_OUT"]?.int == (bytes > Self.bodyMax ? bytes : nil))
  }

  @Test("of any type it is reduced as it comes, and its text comes whole", arguments: [true, false])
  func reduced(isKnown: Bool) throws {
    let text = [UInt8](repeating: 1, count: 100_000)
    let members = #""level":"error","log":"\#(String(repeating: #"\u0001"#, count: text.count))","n":1"#
    var mending = Mending()
    (mending.cuts, mending.otherType, mending.otherMembers) = (true, ReportType("order"), Array(#""TAG":"x""#.utf8))
    let source = SubmissionSource(peer: AdmissionSupport.peer, mending: mending, sessionID: "s")
    let report = Submission(
      isKnown ? "order" : "unknown", in: "shop", members: Array(members.utf8).span, from: source)
    #expect(report.bytes < members.utf8.count / 2)
    let (meta, payload) = try Self.stored(report, isUploaded: true)
    #expect(meta["level"] == "error" && meta["n"] == 1 && meta["TAG"]?.string == (isKnown ? nil : "x"))
    let kept = try #require(meta["log"]?.string?.utf8.count)
    #expect(meta["TRUNCATED"]?.int == text.count - kept && meta["PAYLOAD_FIELD"] == "log" && payload == text)
  }
}
