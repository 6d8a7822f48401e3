import PrismAdmission
import PrismConfig
import PrismProtocol
import Testing

/// The sessions of connected programs (docs/sessions.md).
@Suite struct SessionBookTests {
  private static let shop = AdmissionSupport.shop

  /// `shop` counts sessions, and `root`, where the peer may not report.
  private static let snapshot = AdmissionSupport.snapshot {
    for name in ["shop", "root"] {
      $0.namespaces[NamespaceName(name)!]?.monitorList.append(MonitoredType(.appHealth))
    }
  }

  /// The program after each greeting.
  private static func programs(_ hellos: [String], peer: ReportingPeer = AdmissionSupport.peer) -> [ProgramSession??] {
    var conversation = AdmissionSupport.conversation(snapshot, peer: peer)
    return hellos.map { hello in
      conversation.consume(#"{"hello":\#(hello)}"# + "\n")
      return conversation.takeProgram()
    }
  }

  private static func program(_ hello: String) -> ProgramSession? { programs([hello])[0] ?? nil }

  private static func events(_ notes: [BatchNote]) -> [SessionEvent.What] {
    notes.flatMap { $0.sessions ?? [] }.map(\.what)
  }

  @Test("a greeting makes a session for the namespaces that the program may report to; without one there is no session")
  func greetings() throws {
    let found = Self.programs([
      #"{"app":{"APP_NAME":"pos","APP_VERSION":"1"}}"#, #"{"session":false}"#, #"{"session":"a-1"}"#,
    ])
    #expect(found[0] != nil && found[1] == .some(nil) && found[2] != nil && found[2] != found[0])
    var conversation = AdmissionSupport.conversation(Self.snapshot)
    conversation.consume(#"{"type":"net","meta":{"a":1}}"# + "\n")
    #expect(conversation.takeProgram() == nil)
    var book = SessionBook(run: "r")
    book.set(try #require(found[0] ?? nil), of: 1, now: .zero)
    let notes = book.takeNotes([])
    #expect(notes.map(\.namespace) == [Self.shop])
    #expect(notes[0].sessions?.map(\.app) == [AppVersion(name: "pos", version: "1")])
  }

  @Test("`session` is a bool or an id", arguments: ["1", #""a b""#, #""""#, "null", "[]"])
  func badSessions(value: String) {
    var conversation = AdmissionSupport.conversation(Self.snapshot)
    conversation.consume(#"{"hello":{"session":\#(value)}}"# + "\n")
    let answers = conversation.answers()
    #expect(
      answers.first?["code"] == "bad_request" && answers.first?["message"]?.string?.contains("hello.session") == true)
    #expect(conversation.takeProgram() == nil)
  }

  @Test("an app is in use while any of its connections is open, and the time is counted once") func use() throws {
    let program = try #require(Self.program(#"{"app":{"APP_NAME":"pos"}}"#))
    var book = SessionBook(run: "r")
    book.set(program, of: 1, now: .seconds(10))
    book.set(program, of: 2, now: .seconds(12))
    book.set(program, of: 2, now: .seconds(13))  // greets again
    book.end(1, now: .seconds(14))
    book.look(now: .seconds(15))
    book.end(2, now: .seconds(18))
    book.end(2, now: .seconds(19))
    let events = Self.events(book.takeNotes([]))
    #expect(events == [.begin(id: nil), .begin(id: nil), .use(milliseconds: 5000), .use(milliseconds: 3000)])
    #expect(book.count == 0)
  }

  @Test("a unit that connects for each request is one session for each process, in use until it was not heard of")
  func units() throws {
    let session = AdmissionSupport.session(Self.snapshot)
    let program = try #require(session.unitProgram)
    var book = SessionBook(run: "r")
    for connection in 1...3 {
      book.set(program, of: connection, now: .seconds(connection))
      book.end(connection, now: .seconds(connection))
    }
    book.look(now: .seconds(300))
    book.look(now: .seconds(600))
    book.look(now: .seconds(900))
    let begun = SessionEvent.What.begin(id: "pos.service 4711")
    #expect(Self.events(book.takeNotes([])) == [begun, begun, begun, .use(milliseconds: 299_000)])
  }

  @Test("events whose commit failed go again under the same mark, before newer ones") func failures() throws {
    let program = try #require(Self.program(#"{"app":{"APP_NAME":"pos"},"session":"a"}"#))
    var book = SessionBook(run: "r")
    book.set(program, of: 1, now: .zero)
    let first = book.takeNotes([])
    book.end(1, now: .seconds(1))
    #expect(book.takeNotes([]) == first)
    book.settle()
    let second = book.takeNotes([])
    #expect(Self.events(second) == [.use(milliseconds: 1000)] && second[0].value != first[0].value)
    book.settle()
    book.look(now: .seconds(2))
    #expect(book.takeNotes([Self.shop]).map(\.namespace) == [Self.shop], "its hour may be over")
  }

  @Test("many sessions ask for a commit, and past a bound events are left out and counted") func bounds() throws {
    let program = try #require(Self.program(#"{"app":{"APP_NAME":"pos"}}"#))
    var book = SessionBook(run: "r")
    for connection in 0..<1000 {
      #expect(!book.isDue)
      book.set(program, of: connection, now: .zero)
    }
    #expect(book.isDue)
    for connection in 1000..<11_000 { book.set(program, of: connection, now: .zero) }
    #expect(book.leftOut == 1000 && Self.events(book.takeNotes([])).count == 10_000)
  }
}
