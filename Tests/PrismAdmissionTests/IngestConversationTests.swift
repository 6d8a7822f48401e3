import PrismAdmission
import PrismConfig
import PrismProtocol
import Testing

@Suite("A conversation: requests in, answers out in their order")
struct IngestConversationTests {
  private static let good = #"{"type":"net","meta":{"ms":12},"reportId":"good"}"#

  /// One line for each reason to refuse that lies in the line or the configuration, and the raw bytes after it.
  private static let refused: [(line: String, code: String)] = [
    ("nonsense", "bad_request"), ("[1]", "bad_request"), (#"{"type":1}"#, "bad_request"),
    (#"{"type":"net","meta":{"a":1},"surprise":1}"#, "bad_request"),
    (#"{"type":"net","meta":{"a":1},"reportId":"ö","payloadBytes":6}"# + "\n{bad}\n", "bad_request"),
    (#"{"namespace":"none","type":"net","meta":{"a":1},"payloadBytes":3}"# + "\nabc", "unknown_namespace"),
    (#"{"type":"none","meta":{"a":1},"payloadBytes":3}"# + "\n\n\n\n", "unknown_type"),
    (#"{"namespace":"mute","type":"order","meta":{"a":1}}"#, "gather_off"),
    (#"{"namespace":"root","type":"order","meta":{"a":1}}"#, "forbidden"),
    (#"{"type":"net","meta":{"a":"\#(String(repeating: "x", count: 10_240))"}}"#, "meta_too_large"),
    (
      #"{"type":"net","meta":{"a":1},"payloadBytes":1001}"# + "\n" + String(repeating: "p", count: 1001),
      "payload_too_large"
    ),
    (#"{"isGather":"none"}"#, "unknown_namespace"), (#"{"hello":{"app":{"X":"y"}}}"#, "bad_request"),
    (#"{"hello":{"app":{"APP_NAME":1}}}"#, "bad_request"), (#"{"hello":{"answer":"all"}}"#, "bad_request"),
    (#"{"hello":{"colour":"red"}}"#, "bad_request"), (#"{"hello":{"app":{"SYS_PEER_UID":"0"}}}"#, "bad_request"),
    (#"{"hello":{"app":{"APP_NAME":"\#(String(repeating: "x", count: 257))"}}}"#, "bad_request"),
  ]

  @Test(
    "a bad line is refused with its code, and the next one is served, however the bytes are cut",
    arguments: [1, 13, 4096])
  func refusals(chunk: Int) {
    for (line, code) in Self.refused {
      var conversation = AdmissionSupport.conversation()
      // After a payload, the next line begins at once.
      let separator = line.contains("payloadBytes") ? "" : "\n"
      conversation.consume(line + separator + Self.good + "\n", chunk: chunk)
      var store = CommittingStore()
      store.commit(&conversation)
      let answers = conversation.answers()
      #expect(answers.count == 2, "\(line.prefix(80))")
      #expect(answers.first?["code"]?.string == code, "\(line.prefix(80))")
      #expect(answers.last?["reportId"]?.string == "good", "\(line.prefix(80))")
      #expect(!conversation.mustClose && conversation.isSettled)
    }
  }

  @Test("answers come in the order of the requests, also while some wait for a commit")
  func order() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(
      [Self.good, "nonsense", #"{"isGather":"prism"}"#, Self.good, #"{"hello":{}}"#].joined(separator: "\n") + "\n")
    #expect(conversation.answers() == [], "nothing is answered before the commit")
    var store = CommittingStore()
    store.commit(&conversation)
    let answers = conversation.answers()
    #expect(answers.count == 5)
    #expect(answers[0] == ["status": "stored", "reportId": "good"])
    #expect(answers[1]["code"] == "bad_request")
    #expect(answers[2] == ["isGather": true])
    #expect(answers[3] == ["status": "stored", "reportId": "good", "duplicate": true])
    #expect(answers[4]["hello"]?["server"] == "prismd")
    #expect(answers[4]["hello"]?["limits"]?["payloadByte"]?.int == 1_048_576)
  }

  @Test(
    "a client that reads no more: its reports are stored, refusals are counted, and no text of them is made",
    arguments: [AnswerMode.each, .cumulative])
  func unread(mode: AnswerMode) {
    var conversation = AdmissionSupport.conversation()
    conversation.forcedAnswerMode = mode
    conversation.isRead = false
    conversation.consume(String(repeating: "x\n", count: 1000))
    #expect(conversation.output.count < 100 && conversation.takeTally().refused[.badRequest] == 1000)
    conversation.consume("\(Self.good)\n")
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(conversation.takeTally().stored == 1 && conversation.isSettled)
  }

  @Test("cumulative answers: one line a commit, refusals by their number, from 1")
  func cumulative() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"hello":{"answer":"cumulative"}}"# + "\nbad\n")
    #expect(conversation.answers().count == 2, "the greeting's, and the line for what needs no commit")
    conversation.consume("\(Self.good)\n\(Self.good)\nworse\n\(Self.good)\n")
    var store = CommittingStore()
    store.commit(&conversation)
    let answers = conversation.answers()
    #expect(answers.count == 1)
    #expect(answers.first?["acked"]?.int == 5)
    #expect(answers.first?["refused"]?.array?.map { $0["seq"]?.int } == [4])
    #expect(answers.first?["refused"]?.array?.first?["code"] == "bad_request")
    conversation.consume(#"{"hello":{"answer":"each"}}"# + "\n\(Self.good)\n")
    store.commit(&conversation)
    #expect(conversation.answers().map { $0["status"]?.string } == [nil, "stored"])
  }

  @Test("a greeting or question that is refused is no report, and is answered by itself")
  func refusedGreeting() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"hello":{"answer":"cumulative"}}"# + "\n" + #"{"hello":{"x":1}}"# + "\n\(Self.good)\n")
    var store = CommittingStore()
    store.commit(&conversation)
    let answers = conversation.answers()
    #expect(answers.map { $0["code"]?.string } == [nil, "bad_request", nil])
    #expect(answers.last?["acked"]?.int == 1)
    #expect(conversation.takeTally().received == 1)
  }

  @Test("a commit that failed refuses every report of it", arguments: [false, true])
  func failedCommit(isCumulative: Bool) {
    var conversation = AdmissionSupport.conversation()
    if isCumulative { conversation.consume(#"{"hello":{"answer":"cumulative"}}"# + "\n") }
    conversation.consume("\(Self.good)\n\(Self.good)\n")
    _ = conversation.answers()
    let batches = conversation.takeBatches()
    for _ in batches { conversation.settle(nil, failure: Refusal(.diskFull, "no space", retryMilliseconds: 2000)) }
    conversation.flushAnswers()
    let answers = conversation.answers()
    let refused = isCumulative ? answers.first?["refused"]?.array ?? [] : answers
    #expect(refused.map { $0["code"]?.string } == ["disk_full", "disk_full"])
    #expect(refused.map { $0["retryMs"]?.int } == [2000, 2000])
    #expect(conversation.takeTally().refused[.diskFull] == 2)
  }

  @Test("single rows that the store refuses are named, the others are stored", arguments: [false, true])
  func storeRefusesOne(isCumulative: Bool) {
    var conversation = AdmissionSupport.conversation()
    if isCumulative { conversation.consume(#"{"hello":{"answer":"cumulative"}}"# + "\n") }
    _ = conversation.answers()
    conversation.consume(String(repeating: Self.good + "\n", count: 3))
    _ = conversation.takeBatches()
    var outcome = BatchOutcome(ids: (1...3).map { RowID(value: $0) }, epoch: AdmissionSupport.epoch)
    outcome.exceptions = [(1, .refused(Refusal(.storeFull, "full")))]
    conversation.settle(outcome, failure: nil)
    conversation.flushAnswers()
    let answers = conversation.answers()
    if isCumulative {
      #expect(answers.map { $0["acked"]?.int } == [3])
      #expect(answers[0]["refused"]?.array?.map { $0["seq"]?.int } == [2])
    } else {
      #expect(answers.map { $0["code"]?.string } == [nil, "store_full", nil])
    }
    #expect(conversation.takeTally().stored == 2)
  }

  @Test("what a greeting sets holds for later reports, until the next greeting")
  func greeting() throws {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(
      #"{"hello":{"app":{"APP_NAME":"pos","APP_SESSION_ID":"s"}}}"# + "\n\(Self.good)\n" + #"{"hello":{}}"#
        + "\n\(Self.good)\n")
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(try store.reports.map { $0.meta["APP_NAME"]?.string } == ["pos", "posd"])
    #expect(try store.reports.map { $0.meta["APP_SESSION_ID"]?.string } == ["s", "session-1"])
  }

  @Test("the common information is shown as it would be merged")
  func common() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"common":true}"# + "\n")
    #expect(conversation.answers().first?["common"]?["SYS_PEER_PID"] == "4711")
  }

  @Test("a new configuration counts from the next chunk on")
  func reload() {
    var conversation = AdmissionSupport.conversation()
    let closed = AdmissionSupport.snapshot(generation: 2) { $0.namespaces[.prism]?.isGather = false }
    conversation.consume(Self.good + "\n")
    conversation.take(AdmissionRules(closed))
    conversation.consume(Self.good + "\n")
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(conversation.answers().map { $0["code"]?.string } == [nil, "gather_off"])
  }

  @Test("a client that ends without a line feed is answered; one that ends within a payload is refused")
  func ends() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(Self.good)
    conversation.end(unixMilliseconds: AdmissionSupport.now)
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(conversation.answers().first?["status"] == "stored")

    var cut = AdmissionSupport.conversation()
    cut.consume("\(Self.good)\n" + #"{"type":"net","meta":{"a":1},"payloadBytes":9}"# + "\nabc")
    #expect(cut.partialBytes > 0)
    cut.end(unixMilliseconds: AdmissionSupport.now)
    store.commit(&cut)
    #expect(cut.answers().map { $0["status"]?.string } == ["stored", "refused"])
    #expect(cut.isSettled && cut.partialBytes == 0 && cut.batchBytes == 0)
  }

  @Test("reports before a payload that is still arriving don't wait for it")
  func slowPayload() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume("\(Self.good)\n" + #"{"type":"net","meta":{"a":1},"payloadBytes":9}"# + "\nabc")
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(conversation.answers().count == 1)
    conversation.consume("defghi\(Self.good)\n")
    store.commit(&conversation)
    #expect(conversation.answers().count == 2)
    #expect(
      store.batches.flatMap { batch in batch.rows.compactMap { $0.payload.map { Array(batch.arena[$0]) } } } == [
        Array("abcdefghi".utf8)
      ])
  }

  @Test("too much to skip ends the connection after the answer")
  func tooMuchToSkip() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"type":"net","meta":{"a":1},"payloadBytes":99999999}"# + "\n\(Self.good)\n")
    #expect(conversation.answers().map { $0["code"]?.string } == ["payload_too_large"])
    #expect(conversation.mustClose)
  }

  @Test("a line over the limit is refused, and the next one served")
  func longLine() {
    var conversation = AdmissionSupport.conversation()
    let limit = conversation.session.rules.lineBytesMax
    let line = #"{"type":"net","meta":{"a":1},"payload":""# + String(repeating: "A", count: limit) + "\"}\n"
    conversation.consume(line + Self.good + "\n", chunk: 65_536)
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(conversation.answers().map { $0["code"]?.string } == ["payload_too_large", nil])
  }

  @Test("a stopping daemon answers reports with busy, and questions as ever")
  func stopping() {
    var conversation = AdmissionSupport.conversation()
    conversation.isStopping = true
    conversation.consume("\(Self.good)\n" + #"{"isGather":"prism"}"# + "\n")
    let answers = conversation.answers()
    #expect(answers[0]["code"] == "busy" && answers[0]["retryMs"]?.int == 1000)
    #expect(answers[1] == ["isGather": true])
  }

  @Test("what is held is counted, and given back when it is settled")
  func accounting() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(String(repeating: Self.good + "\n", count: 2000))
    let held = conversation.batchBytes
    #expect(held > 2000 * 60)
    let batches = conversation.takeBatches()
    #expect(batches.count > 1, "batches are closed at a size, so that turns are short")
    #expect(conversation.batchBytes == held)
    for batch in batches {
      let outcome = BatchOutcome(ids: batch.rows.map { _ in RowID(value: 1) }, epoch: AdmissionSupport.epoch)
      conversation.settle(outcome, failure: nil)
    }
    #expect(conversation.batchBytes == 0)
    #expect(conversation.takeTally().received == 2000)
  }
}
