import PrismAdmission
import PrismConfig
import PrismProtocol
import Testing

@Suite("Filters of a type, before the commit")
struct FilterTests {
  private static let tools = FilterTools { Array("key".utf8) + $0.prefix(4) }

  private static func redact(_ rules: [(String, TypeFilters.Redaction.Action)]) -> TypeFilters {
    var filters = TypeFilters()
    filters.redact = rules.map { .init(FieldPath($0)!, $1) }
    return filters
  }

  private static func conversation(
    _ filters: TypeFilters, tools: FilterTools = tools, user: UInt32 = 1000
  ) -> IngestConversation {
    let snapshot = AdmissionSupport.snapshot {
      $0.namespaces[AdmissionSupport.shop]?.monitorList[0].filters = filters
    }
    var peer = AdmissionSupport.peer
    peer.userID = user
    let session = Session(
      rules: AdmissionRules(snapshot, tools: tools), host: AdmissionSupport.facts, peer: peer, sessionID: "session-1")
    return IngestConversation(session: session, version: "9.9")
  }

  private static func line(_ meta: String, id: String? = nil, type: String = "order") -> String {
    let id = id.map { #","reportId":"\#($0)""# } ?? ""
    return #"{"namespace":"shop","type":"\#(type)","meta":\#(meta)\#(id)}"# + "\n"
  }

  /// The report's own members after the filters.
  private static func stored(_ meta: String, _ filters: TypeFilters) throws -> String {
    var (conversation, store) = (conversation(filters), CommittingStore())
    conversation.consume(line(meta))
    store.commit(&conversation)
    guard let batch = store.batches.first, let row = batch.rows.first else { return conversation.answers()[0].text }
    _ = try store.reports  // its counted size is right
    return String(decoding: batch.arena[row.body], as: UTF8.self)
  }

  @Test(
    "redact changes what is on its path, and nothing else",
    arguments: [
      ("user.email", .drop, #"{"user":{"email":"a@b","age":1.50}}"#, #""user":{"age":1.50}"#),
      ("user.email", .mask, #"{"user":{"email":"a@b"},"n":1}"#, #""user":{"email":"***"},"n":1"#),
      ("user.email", .hash, #"{"user":{"email":"a@b"}}"#, #""user":{"email":"6b6579614062"}"#),
      ("user.email", .drop, #"{"user.email":"a@b","n":1}"#, #""n":1"#),
      ("user.email", .drop, #"{"user":{"em\u0061il":"a@b"},"n":1}"#, #""user":{},"n":1"#),
      ("user.email", .drop, #"{"user":{"email":1,"email":2},"n":1}"#, #""user":{},"n":1"#),
      ("user.email", .drop, #"{"user":"a@b", "n" : 1}"#, #""user":"a@b", "n" : 1"#),
      ("user", .drop, #"{"user":{"email":"a@b"}}"#, ""),
      ("items.*.name", .mask, #"{"items":[{"name":"x"},{"id":7}]}"#, #""items":[{"name":"***"},{"id":7}]"#),
      ("*.name", .drop, #"{"a":{"name":1,"n":2},"b":3}"#, #""a":{"n":2},"b":3"#),
      ("list.*", .drop, #"{"list":[1,2]}"#, #""list":[]"#),
      ("n", .hash, #"{"n":12}"#, #""n":"6b65793132""#),
      ("APP_NAME", .drop, #"{"n":12}"#, #""n":12"#),
    ] as [(String, TypeFilters.Redaction.Action, String, String)])
  func redacts(path: String, action: TypeFilters.Redaction.Action, meta: String, expected: String) throws {
    #expect(try Self.stored(meta, Self.redact([(path, action)])) == expected)
  }

  @Test("a value that can't be hashed is masked")
  func noSecret() throws {
    var (conversation, store) = (
      Self.conversation(Self.redact([("n", .hash)]), tools: FilterTools()), CommittingStore()
    )
    conversation.consume(Self.line(#"{"n":"secret"}"#))
    store.commit(&conversation)
    #expect(try store.reports[0].meta["n"] == "***")
  }

  @Test("a type without filters in a namespace with filters is stored as it came")
  func others() throws {
    var (conversation, store) = (Self.conversation(Self.redact([("n", .drop)])), CommittingStore())
    conversation.consume(Self.line(#"{"n":"secret"}"#, type: "urgent"))
    store.commit(&conversation)
    #expect(try store.reports[0].meta["n"] == "secret")
  }

  @Test("sample keeps about its share, the same reports each time, and says the rate")
  func samples() throws {
    var filters = TypeFilters()
    (filters.sample, filters.sampleBy) = (0.25, FieldPath("session"))
    var kept: [[Int]] = []
    for _ in 0..<2 {
      var (conversation, store) = (Self.conversation(filters), CommittingStore())
      conversation.consume(
        (0..<4000).map { Self.line(#"{"session":"s\#($0 / 2)","n":\#($0),"MONITOR_SAMPLE":9}"#) }.joined())
      store.commit(&conversation)
      let marked = store.batches.flatMap { batch in batch.marks.map { batch.rows[$0.row] } }
      #expect(
        marked.allSatisfy { $0.metaBytes == 0 && $0.body.isEmpty && $0.payload == nil && $0.clientReportID == nil })
      let reports = try store.batches.flatMap { batch in
        let leftOut = Set(batch.marks.map(\.row))
        return try batch.rows.indices.filter { !leftOut.contains($0) }.map { row in
          try JSONValue(parsing: [UInt8(ascii: "{")] + batch.arena[batch.rows[row].body] + [UInt8(ascii: "}")])
        }
      }
      #expect(reports.allSatisfy { $0["MONITOR_SAMPLE"] == .number("0.25") })
      #expect(reports.count + marked.count == 4000)
      kept.append(reports.compactMap { $0["n"]?.int })
    }
    #expect(kept[0] == kept[1] && (800...1200).contains(kept[0].count))
    #expect(Set(kept[0].map { $0 / 2 }).count * 2 == kept[0].count, "both reports of a session, or neither")
  }

  @Test("a user's reports of a type are bounded in a minute, and another user's are not", arguments: [1, 600])
  func rate(perMinute: Int) {
    var filters = TypeFilters()
    filters.perMinute = perMinute
    let tools = FilterTools()
    var conversation = Self.conversation(filters, tools: tools)
    var other = Self.conversation(filters, tools: tools, user: 2000)
    func answers(_ conversation: inout IngestConversation, _ count: Int, at now: Int64) -> [JSONValue] {
      var store = CommittingStore()
      for _ in 0..<count { conversation.consume(Self.line(#"{"n":1}"#), unixMilliseconds: now) }
      store.commit(&conversation)
      return conversation.answers()
    }
    let now = AdmissionSupport.now
    let first = answers(&conversation, perMinute + 1, at: now)
    #expect(first.dropLast().allSatisfy { $0["status"] == "stored" })
    #expect(first.last?["code"] == "rate_limited" && first.last?["retryMs"]?.int == 60_000 / perMinute)
    #expect(answers(&other, 1, at: now)[0]["status"] == "stored")
    let next = now + Int64(60_000 / perMinute)
    #expect(answers(&conversation, 2, at: next).map { $0["status"] } == ["stored", "refused"])
    #expect(answers(&conversation, 1, at: now)[0]["status"] == "refused", "a clock that is set back gives nothing")
  }

  @Test("reports that are equal in the fields of collapse are marked alike, others are not")
  func collapse() throws {
    var filters = TypeFilters()
    filters.collapse = .init(by: [FieldPath("reason")!, FieldPath("stack.*")!], seconds: 60)
    let metas = [
      #"{"reason":"a","n":1}"#, #"{"n":2,"reason":"a"}"#, #"{"reason":"b"}"#, #"{"reason":"a","stack":["x"]}"#,
      #"{"n":5}"#, #"{"reason":"a","REPEAT_COUNT":7}"#,
    ]
    var (conversation, store) = (Self.conversation(filters), CommittingStore())
    conversation.consume(metas.map { Self.line($0) }.joined())
    store.commit(&conversation)
    let marks = store.batches[0].marks
    #expect(marks.map(\.row) == [0, 1, 2, 3, 5])
    let alike = marks.map { $0.mark == marks[0].mark }
    #expect(alike == [true, true, false, false, true])
    #expect(try store.reports[5].meta["REPEAT_COUNT"] == nil, "only the store says so")
  }

  @Test("a meta leaves room for its count")
  func roomForCount() {
    var filters = TypeFilters()
    filters.collapse = .init(by: [FieldPath("reason")!], seconds: 60)
    var (taken, refused) = (0, Limits.metaBytesMax)  // bytes of text
    var largest = 0
    while refused - taken > 1 {
      let middle = (taken + refused) / 2
      var (conversation, store) = (Self.conversation(filters), CommittingStore())
      conversation.consume(Self.line(#"{"reason":"\#(String(repeating: "x", count: middle))"}"#))
      store.commit(&conversation)
      if let row = store.batches.first?.rows.first {
        (taken, largest) = (middle, row.metaBytes)
      } else {
        refused = middle
      }
    }
    #expect(largest == Limits.metaBytesMax - ReportBatch.Repeat.membersBytesMax)
  }

  @Test("a report that is left out is answered so, with its payload taken off the stream")
  func sampledPayload() {
    var filters = TypeFilters()
    filters.sample = 0.000_001
    var conversation = Self.conversation(filters)
    let report = #"{"namespace":"shop","type":"order","meta":{"n":1},"reportId":"r","payloadBytes":3}"# + "\n"
    conversation.consume(report + "abc" + Self.line(#"{"n":1}"#, type: "urgent"))
    let batches = conversation.takeBatches()
    #expect(batches.flatMap { $0.marks.map(\.mark) } == [.sampledOut])
    #expect(batches.flatMap(\.rows).map { $0.payload?.count ?? 0 } == [0, 0])
    for batch in batches {
      var outcome = BatchOutcome(
        ids: batch.rows.indices.map { RowID(priority: .rest, sequence: Int64($0) + 1) }, epoch: AdmissionSupport.epoch)
      outcome.exceptions = batch.marks.map { ($0.row, .sampledOut) }
      conversation.settle(outcome, failure: nil)
    }
    #expect(conversation.answers().map { $0["status"] } == ["sampled", "stored"])
    let tally = conversation.takeTally()
    #expect((tally.received, tally.stored, tally.sampled) == (2, 1, 1))
  }
}
