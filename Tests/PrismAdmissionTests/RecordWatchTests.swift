import PrismAdmission
import PrismConfig
import PrismProtocol
import Testing

@Suite("Watching a table of records")
struct RecordWatchTests {
  private static let (part, suit) = (RecordTableName("part")!, RecordTableName("suit")!)
  private static let watchPart = #"{"watch":{"namespace":"shop","table":"part"}}"# + "\n"

  private static func snapshot(
    _ generation: Int = 1, tables: [RecordTableName] = [part, suit], _ change: (inout Snapshot) -> Void = { _ in }
  ) -> Snapshot {
    AdmissionSupport.snapshot(generation: generation) { snapshot in
      snapshot.namespaces[AdmissionSupport.shop]!.records = tables.map { RecordTable($0) }
      change(&snapshot)
    }
  }

  private static func change(_ generation: Int64, _ ids: [String]?, of table: RecordTableName = part)
    -> RecordTableChange
  {
    RecordTableChange(
      AdmissionSupport.shop, table, generation: generation, ids: ids.map { $0.compactMap { RecordID($0) } })
  }

  private static func line(
    _ kind: String, _ generation: Int64, _ ids: [String]? = nil, of table: String = "part"
  ) -> JSONValue {
    let ids = ids.map { [JSONValue.Member("ids", .array($0.map { .string($0) }))] } ?? []
    let members: [JSONValue.Member] = [
      .init("namespace", "shop"), .init("table", .string(table)), .init("generation", .int(generation)),
    ]
    return .object([.init(kind, .object(members + ids))])
  }

  /// Commits the requests of a conversation; the table has this generation.
  private static func answer(_ conversation: inout IngestConversation, generation: Int64) {
    for batch in conversation.takeBatches() {
      var outcome = BatchOutcome(ids: [], epoch: AdmissionSupport.epoch)
      if let request = batch.record, case .watch = request.action {
        outcome.record = RecordOutcome(.watching(request.namespace, request.table.name, generation: generation))
      }
      conversation.settle(outcome, failure: nil)
    }
    conversation.flushAnswers()
  }

  private static func watching(places: WatchPlaces = WatchPlaces()) -> IngestConversation {
    var conversation = IngestConversation(
      session: AdmissionSupport.session(snapshot()), version: "9.9", places: places)
    conversation.consume(watchPart)
    answer(&conversation, generation: 17)
    return conversation
  }

  @Test(
    "a question is charged with its greatest answer before the store is asked, and no further ones are taken past the limit",
    arguments: [
      (#"{"list":{"namespace":"shop","table":"part","limit":1000}}"#, 2),
      (#"{"list":{"namespace":"shop","table":"part","limit":1}}"#, 12),
      (#"{"get":{"namespace":"shop","table":"part","id":"a"}}"#, 12),
      (#"{"watch":{"namespace":"shop","table":"part"}}"#, 300),
      (#"{"delete":{"namespace":"shop","table":"part","id":"a"}}"#, 300),
    ])
  func chargedAnswers(line: String, most: Int) {
    var conversation = IngestConversation(session: AdmissionSupport.session(Self.snapshot()), version: "9.9")
    let input = Array(String(repeating: line + "\n", count: 400).utf8)
    var (position, asked, rest) = (0, 0, input.count)
    for _ in 0..<400 {
      var turn = WorkTurn(credit: WorkOrder.connectionTurn, unreadBytesMax: Limits.unreadBytesMax)
      let before = conversation.memoryBytes
      position = conversation.consume(input.span, from: position, within: &turn, unixMilliseconds: 0)
      #expect(conversation.memoryBytes - before <= PendingBudget.turnBytes, "a turn adds what it reserved")
      asked += conversation.takeBatches().count
      guard input.count - position < rest else { break }
      rest = input.count - position
    }
    #expect((1...most).contains(asked), "\(asked) of 400")
    #expect(conversation.unreadBytes >= Limits.unreadBytesMax / 2)
    for _ in 0..<asked { conversation.settle(nil, failure: .stopping) }
    #expect(conversation.unreadBytes == conversation.output.count, "the charge is given back")
  }

  @Test("a body over HTTP is answered as one response: a question whose answer would be too much for it is refused")
  func bodyOfQuestions() {
    var conversation = IngestConversation(session: AdmissionSupport.session(Self.snapshot()), version: "9.9")
    conversation.forcedAnswerMode = .each
    let line = #"{"list":{"namespace":"shop","table":"part","limit":1000}}"# + "\n"
    conversation.consume(String(repeating: line, count: 50))
    let asked = conversation.takeBatches().count
    #expect(asked == 1)
    conversation.settle(nil, failure: .stopping)
    conversation.flushAnswers()
    let codes = conversation.answers().map { $0["code"]?.string }
    #expect(codes == ["busy"] + Array(repeating: "payload_too_large", count: 49))
  }

  @Test("the answer has the generation, and each later commit is one line with the records that it changed")
  func changes() {
    var conversation = Self.watching()
    #expect(conversation.answers() == [Self.line("watch", 17)])
    let isTaken1 = conversation.take(Self.change(18, ["a"]))
    #expect(isTaken1)
    #expect(conversation.changes() == [Self.line("changed", 18, ["a"])])
    let isTaken2 = conversation.take(Self.change(20, ["a", "b"]))
    #expect(isTaken2)
    #expect(conversation.changes() == [Self.line("changed", 20, ["a", "b"])])
    #expect(conversation.changes() == [])
    let isTaken3 = conversation.take(Self.change(3, ["c"], of: Self.suit))
    #expect(!isTaken3, "it watches another table")
  }

  @Test("a client that does not read gets one line with the newest generation and no ids")
  func slowReader() {
    var conversation = Self.watching()  // its answer is not read
    let before = conversation.memoryBytes
    for generation in 18...500 {
      _ = conversation.take(Self.change(Int64(generation), ["a\(generation)"]))
      let hasMore = conversation.answerChanges()
      #expect(!hasMore, "something waits to be read")
    }
    #expect(conversation.memoryBytes < before + 400, "nothing is held for each of them")
    _ = conversation.answers()
    #expect(conversation.changes() == [Self.line("changed", 500)])
  }

  @Test("a change between the request and its answer is sent after it, if it is newer than the answer")
  func beforeTheAnswer() {
    for (generation, expected) in [(17, []), (18, [Self.line("changed", 18, ["a"])])] as [(Int64, [JSONValue])] {
      var conversation = AdmissionSupport.conversation(Self.snapshot())
      conversation.consume(Self.watchPart)
      let isTaken4 = conversation.take(Self.change(generation, ["a"]))
      #expect(isTaken4)
      #expect(conversation.changes() == [])
      Self.answer(&conversation, generation: 17)
      #expect(conversation.answers() == [Self.line("watch", 17)])
      #expect(conversation.changes() == expected)
    }
  }

  @Test("a table that may not be read any more gets one line that says so, and no change")
  func ended() {
    let cases: [(Snapshot, String)] = [
      (Self.snapshot(2, tables: [Self.suit]), "unknown_table"),
      (
        Self.snapshot(2) { $0.namespaces[AdmissionSupport.shop]?.allow = .init(userIDs: [0], groupIDs: []) },
        "forbidden"
      ),
      (Self.snapshot(2) { $0.namespaces[AdmissionSupport.shop] = nil }, "unknown_namespace"),
    ]
    for (snapshot, code) in cases {
      var conversation = Self.watching()
      _ = conversation.answers()
      _ = conversation.take(Self.change(18, ["secret"]))
      conversation.take(AdmissionRules(snapshot))
      let told = conversation.changes()
      #expect(told.map { $0["ended"]?["code"]?.string } == [code])
      #expect(told.first?["ended"]?["table"] == "part")
      #expect(!conversation.isWatching)
      let isTaken5 = conversation.take(Self.change(19, ["secret"]))
      #expect(!isTaken5)
      #expect(conversation.changes() == [])
    }
  }

  @Test("a configuration that leaves the table where it is says nothing of it")
  func otherRules() {
    var conversation = Self.watching()
    _ = conversation.answers()
    conversation.take(AdmissionRules(Self.snapshot(2, tables: [Self.part])))
    #expect(conversation.changes() == [])
    #expect(conversation.isWatching)
  }

  @Test(
    "a wrong watch is refused with its reason, and watches nothing",
    arguments: [
      (#"{"watch":{"namespace":"shop","table":"car"}}"#, "unknown_table"),
      (#"{"watch":{"namespace":"shop","table":7}}"#, "bad_request"),
      (#"{"watch":{"namespace":"shop","table":"part","id":"a"}}"#, "bad_request"),
      (#"{"watch":{"namespace":"root","table":"part"}}"#, "forbidden"),
      (#"{"watch":{"namespace":"none","table":"part"}}"#, "unknown_namespace"),
    ])
  func refused(line: String, code: String) {
    var conversation = AdmissionSupport.conversation(Self.snapshot())
    conversation.consume(line + "\n")
    #expect(conversation.answers().map { $0["code"]?.string } == [code])
    #expect(!conversation.isWatching)
  }

  @Test("a watch whose commit failed is refused and watches nothing; one that holds goes on")
  func failed() {
    let places = WatchPlaces()
    var conversation = AdmissionSupport.conversation(Self.snapshot())
    conversation.consume(Self.watchPart)
    _ = conversation.takeBatches()
    conversation.settle(nil, failure: Refusal(.internal, "no"))
    conversation.flushAnswers()
    #expect(conversation.answers().map { $0["code"] } == ["internal"])
    #expect(!conversation.isWatching)

    var held = Self.watching(places: places)
    held.consume(Self.watchPart)
    _ = held.takeBatches()
    held.settle(nil, failure: Refusal(.internal, "no"))
    #expect(held.isWatching)
  }

  @Test(
    "a user has a bounded number of watches over all connections, of tables and of switches; an end gives them back")
  func perUser() {
    let places = WatchPlaces()
    var conversations: [IngestConversation] = []
    for _ in 0..<WatchPlaces.perUserMax { conversations.append(Self.watching(places: places)) }
    for line in [Self.watchPart, #"{"watch":{"namespace":"shop","configuration":true}}"# + "\n"] {
      var other = IngestConversation(
        session: AdmissionSupport.session(Self.snapshot()), version: "9.9", places: places)
      other.consume(line)
      #expect(other.answers().map { $0["code"] } == ["busy"])
      #expect(!other.isWatching)
    }
    let stranger = ReportingPeer(userID: 1001, groupIDs: [], processID: 1)
    var theirs = IngestConversation(
      session: AdmissionSupport.session(Self.snapshot(), peer: stranger), version: "9.9", places: places)
    theirs.consume(Self.watchPart)
    #expect(theirs.isWatching, "another user has places of its own")
    conversations.removeLast()
    var next = Self.watching(places: places)
    #expect(next.answers().map { $0["watch"] != nil } == [true])
    #expect(!places.isEmpty)
  }

  @Test("over HTTP changes are asked for, and not sent")
  func poll() throws {
    var conversation = AdmissionSupport.conversation(Self.snapshot())
    conversation.forcedAnswerMode = .each
    conversation.consume(Self.watchPart)
    #expect(conversation.answers().map { $0["code"] } == ["bad_request"])
    let key = WatchedTable.Key(namespace: AdmissionSupport.shop, table: Self.part)
    try conversation.beginPoll(key)
    #expect(!conversation.hasChanged(key, since: 5))
    _ = conversation.take(Self.change(5, ["a"]))
    #expect(!conversation.hasChanged(key, since: 5), "the list had it")
    _ = conversation.take(Self.change(6, ["a"]))
    #expect(conversation.hasChanged(key, since: 5))
    #expect(conversation.changes() == [])
    conversation.endPoll(key)
    #expect(!conversation.isWatching)
  }
}

extension IngestConversation {
  /// The lines with changes, and answers before them.
  fileprivate mutating func changes() -> [JSONValue] {
    _ = answerChanges()
    return answers()
  }
}
