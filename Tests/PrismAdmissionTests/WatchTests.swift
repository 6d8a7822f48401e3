import PrismAdmission
import PrismConfig
import PrismProtocol
import Testing

@Suite("Watching a namespace's switches")
struct WatchTests {
  private static let watchShop = #"{"watch":{"namespace":"shop","configuration":true}}"# + "\n"
  private static let report = #"{"type":"net","meta":{"ms":12},"reportId":"good"}"# + "\n"

  private static func rules(
    _ generation: Int, _ change: (inout NamespaceConfiguration) -> Void
  ) -> AdmissionRules {
    AdmissionRules(
      AdmissionSupport.snapshot(generation: generation) { change(&$0.namespaces[AdmissionSupport.shop]!) })
  }

  private static func shop(_ generation: Int, isGather: Bool = true, types: [String] = ["order", "urgent"]) -> JSONValue
  {
    NamespaceSwitches(namespace: "shop", generation: generation, isGather: isGather, types: types).json
  }

  /// A conversation that watches, after its answer.
  private static func watching() -> IngestConversation {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(watchShop)
    _ = conversation.answers()
    return conversation
  }

  @Test("the answer has the switches, and each change of them is sent")
  func changes() {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(Self.watchShop)
    #expect(conversation.answers() == [["watch": Self.shop(1)]])
    conversation.take(Self.rules(2) { $0.isGather = false })
    #expect(conversation.changes() == [["changed": Self.shop(2, isGather: false)]])
    conversation.take(Self.rules(3) { $0.monitorList.removeLast() })
    #expect(conversation.changes() == [["changed": Self.shop(3, types: ["order"])]])
  }

  @Test("a configuration that changes nothing of the switches is not sent")
  func others() {
    var conversation = Self.watching()
    conversation.take(Self.rules(2) { $0.maxItem = 7 })
    #expect(conversation.changes() == [])
  }

  @Test("a client that does not read gets the last state only")
  func slowReader() {
    var conversation = Self.watching()
    conversation.consume(Self.watchShop)  // its answer is not read
    for generation in 2...50 {
      conversation.take(Self.rules(generation) { $0.isGather = generation % 2 == 0 })
      let hasMore = conversation.answerChanges()
      #expect(!hasMore, "something waits to be read")
    }
    conversation.take(Self.rules(51) { $0.isGather = false })
    _ = conversation.answers()
    #expect(conversation.changes() == [["changed": Self.shop(51, isGather: false)]])
  }

  @Test("a change waits for the answers of reports before it")
  func order() {
    var conversation = Self.watching()
    conversation.consume(Self.report)
    conversation.take(Self.rules(2) { $0.isGather = false })
    #expect(conversation.changes() == [])
    var store = CommittingStore()
    store.commit(&conversation)
    let answers = conversation.changes()
    #expect(answers.count == 2)
    #expect(answers.first?["status"] == "stored" && answers.last == ["changed": Self.shop(2, isGather: false)])
  }

  @Test("of a namespace that is gone, or closed to the sender, nothing is taken")
  func gone() {
    for change in [{ $0.namespaces[AdmissionSupport.shop] = nil }, { Self.close(&$0) }] as [(inout Snapshot) -> Void] {
      var conversation = Self.watching()
      conversation.take(AdmissionRules(AdmissionSupport.snapshot(generation: 2, change)))
      #expect(conversation.changes() == [["changed": Self.shop(2, isGather: false, types: [])]])
    }
  }

  private static func close(_ snapshot: inout Snapshot) {
    snapshot.namespaces[AdmissionSupport.shop]?.allow = .init(userIDs: [0], groupIDs: [])
  }

  @Test(
    "a wrong watch is refused with its reason",
    arguments: [
      (#"{"watch":1}"#, "bad_request"), (#"{"watch":{}}"#, "bad_request"),
      (#"{"watch":{"namespace":"shop"}}"#, "bad_request"),
      (#"{"watch":{"namespace":1,"configuration":true}}"#, "bad_request"),
      (#"{"watch":{"configuration":true,"colour":1}}"#, "bad_request"),
      (#"{"watch":{"configuration":true},"type":"net"}"#, "bad_request"),
      (#"{"watch":{"namespace":"none","configuration":true}}"#, "unknown_namespace"),
      (#"{"watch":{"namespace":"root","configuration":true}}"#, "forbidden"),
    ])
  func refused(line: String, code: String) {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(line + "\n")
    #expect(conversation.answers().map { $0["code"]?.string } == [code])
    #expect(!conversation.isWatching)
  }

  @Test("a connection watches a bounded number of namespaces; over HTTP a watch is refused")
  func bounds() {
    let names = (0..<65).map { "n\($0)" }
    let snapshot = AdmissionSupport.snapshot { snapshot in
      for name in names.compactMap({ NamespaceName($0) }) {
        snapshot.namespaces[name] = NamespaceConfiguration(name: name, monitorList: [MonitoredType(.appCrash)])
      }
    }
    var conversation = AdmissionSupport.conversation(snapshot)
    for name in names { conversation.consume(#"{"watch":{"namespace":"\#(name)","configuration":true}}"# + "\n") }
    #expect(conversation.answers().count { $0["code"] == "bad_request" } == 1)
    #expect(conversation.memoryBytes > 64 * 128, "it is counted")
    var exchange = AdmissionSupport.conversation()
    exchange.forcedAnswerMode = .each
    exchange.consume(Self.watchShop)
    #expect(exchange.answers().map { $0["code"]?.string } == ["bad_request"])
  }

  @Test("a type is taken by its name or a pattern, and by no means while nothing is gathered")
  func takes() throws {
    let switches = NamespaceSwitches(namespace: "a", generation: 1, isGather: true, types: ["order.*", "net"])
    for (type, isTaken) in [("order.new", true), ("net", true), ("netto", false), ("order", false)] {
      #expect(switches.takes(try #require(ReportType(type))) == isTaken, "\(type)")
    }
    let off = NamespaceSwitches(namespace: "a", generation: 1, isGather: false, types: ["*"])
    #expect(!off.takes(.appCrash))
  }
}

extension IngestConversation {
  /// The lines with changes, and answers before them.
  fileprivate mutating func changes() -> [JSONValue] {
    _ = answerChanges()
    return answers()
  }
}
