import PrismConfig
import PrismProtocol
import Testing

@testable import PrismAdmission

@Suite("Types that a pattern of the monitor list means")
struct PatternTests {
  private static func conversation(_ list: [MonitoredType]) -> IngestConversation {
    AdmissionSupport.conversation(
      AdmissionSupport.snapshot { $0.namespaces[AdmissionSupport.shop]?.monitorList = list })
  }

  private static func entry(_ text: String, isRealtime: Bool = false) -> MonitoredType {
    MonitoredType(ReportType(entry: text)!, isRealtime: isRealtime)
  }

  private static func line(_ type: String) -> String {
    #"{"namespace":"shop","type":"\#(type)","meta":{"n":1}}"# + "\n"
  }

  @Test("are taken under their own names, with the switches of the entry that means them")
  func taken() throws {
    var conversation = Self.conversation([
      Self.entry("*"), Self.entry("order.*", isRealtime: true), Self.entry("order.debug"),
    ])
    let types = ["order.new", "order.debug", "click", "order.new", "appCrash"]
    conversation.consume(types.map(Self.line).joined())
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(try store.reports.map { $0.meta["MONITOR_TYPE"] } == types.map { .string("shop-\($0)") })
    let rows = store.batches.flatMap { batch in batch.rows.map { batch.types[$0.type] } }
    #expect(rows.map(\.priority) == [.realtime, .rest, .rest, .realtime, .crash])
  }

  @Test(
    "a pattern as a type, and what is no type's name, are refused", arguments: ["order.*", "*", "", "a b", "\\u00ff"])
  func refused(type: String) {
    var conversation = Self.conversation([Self.entry("*"), Self.entry("order.*")])
    conversation.consume(Self.line(type))
    #expect(conversation.answers().map { $0["code"] } == ["unknown_type"])
  }

  @Test("a client can't make up types without end")
  func bounded() throws {
    var conversation = Self.conversation([Self.entry("made.*"), Self.entry("order")])
    conversation.consume((0...1000).map { Self.line("made.\($0)") }.joined() + Self.line("made.0") + Self.line("order"))
    var store = CommittingStore()
    store.commit(&conversation)
    let answers = conversation.answers()
    #expect(answers[1000]["code"] == "unknown_type" && answers[1000]["message"]?.string?.contains("1000 types") == true)
    #expect(answers.count { $0["status"] == "stored" } == 1002)
  }

  @Test("a reload between two reports of one batch changes the type of neither")
  func reload() throws {
    var conversation = Self.conversation([Self.entry("order"), Self.entry("click")])
    conversation.consume(Self.line("order"))
    let reordered = AdmissionSupport.snapshot(generation: 2) {
      $0.namespaces[AdmissionSupport.shop]?.monitorList = [Self.entry("click"), Self.entry("order")]
    }
    conversation.take(AdmissionRules(reordered))
    conversation.consume(Self.line("click"))
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(try store.reports.map { $0.meta["MONITOR_TYPE"] } == ["shop-order", "shop-click"])
  }

  @Test("one user fills the places of a pattern's types, and others still get some")
  func places() throws {
    let types = try #require(PatternTypes([Self.entry("*")]))
    func taken(by user: UInt32, of names: Range<Int>) -> Int {
      names.count { types.index(of: "u\(user).n\($0)", from: user) != nil }
    }
    #expect(taken(by: 1, of: 0..<1200) == 1000 && !types.hasRoom(for: 1))
    #expect((2...6).map { taken(by: $0, of: 0..<100) } == [63, 63, 63, 61, 0])
    #expect(types.index(of: "u1.n5", from: 6) != nil, "a type that is known has its place")
  }

  @Test("the filters of a pattern hold for all types that it means")
  func filtered() throws {
    var pattern = Self.entry("order.*")
    pattern.filters.redact = [.init(FieldPath("n")!, .mask)]
    var conversation = Self.conversation([Self.entry("order.plain"), pattern])
    conversation.consume(Self.line("order.new") + Self.line("order.plain"))
    var store = CommittingStore()
    store.commit(&conversation)
    #expect(try store.reports.map { $0.meta["n"]?.text } == [#""***""#, "1"])
  }
}
