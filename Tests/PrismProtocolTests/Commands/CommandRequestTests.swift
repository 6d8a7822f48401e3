import PrismProtocol
import Testing

@Suite("Commands as records") struct CommandRequestTests {
  private static let now: Int64 = 1_763_700_000_000

  private static func read(_ fields: String) throws(CommandFault) -> CommandRequest {
    guard let value = try? JSONValue(parsing: fields) else { throw .fieldsNotObject }
    return try CommandRequest(
      fields: value, namespace: NamespaceName("shop")!, deviceID: "d 1".replacing(" ", with: "-"), id: RecordID("c1")!)
  }

  @Test("the signed bytes are the documented ones, with the arguments by ascending name")
  func signedBytes() throws {
    let fields = #"{"name":"log","args":{"b":"é\n1","a-":-7,"a":true,"Z":""},"expires":1763700000000}"#
    let request = try Self.read(fields)
    let text =
      "prism-command-1\nshop\nd-1\nc1\nlog\n1763700000000\nZ\ns\n0\n\na\nb\n4\ntrue\na-\ni\n2\n-7\nb\ns\n4\né\n1\n"
    #expect(String(decoding: request.signedBytes, as: UTF8.self) == text)
    #expect(try Self.read(request.fields.text) == request)
    let none = try Self.read(#"{"name":"flush","expires":5,"args":{}}"#)
    #expect(String(decoding: none.signedBytes, as: UTF8.self) == "prism-command-1\nshop\nd-1\nc1\nflush\n5\n")
    #expect(none.fields.text == #"{"name":"flush","expires":5}"#)
  }

  @Test("no two commands share their signed bytes: each difference changes them")
  func distinct() throws {
    let base = #"{"name":"run","args":{"a":"1"},"expires":5}"#
    let others = [
      #"{"name":"collect","args":{"a":"1"},"expires":5}"#, #"{"name":"run","args":{"a":"1"},"expires":6}"#,
      #"{"name":"run","args":{"a":1},"expires":5}"#, #"{"name":"run","args":{"b":"1"},"expires":5}"#,
      #"{"name":"run","args":{"a":"1\nb\ns\n1\n2"},"expires":5}"#,
      #"{"name":"run","args":{"a":"1","b":"2"},"expires":5}"#,
      #"{"name":"run","args":{"a":"true"},"expires":5}"#, #"{"name":"run","args":{"a":true},"expires":5}"#,
      #"{"name":"run","expires":5}"#,
    ]
    let signed = try ([base] + others).map { try Self.read($0).signedBytes }
    #expect(Set(signed).count == signed.count)
    var other = try Self.read(base)
    other.namespace = NamespaceName("other")!
    #expect(other.signedBytes != signed[0])
    other = try Self.read(base)
    other.deviceID = "d-2"
    #expect(other.signedBytes != signed[0])
    other = try Self.read(base)
    other.id = RecordID("c2")!
    #expect(other.signedBytes != signed[0])
  }

  @Test(
    "fields that are no command are refused with their fault",
    arguments: [
      ("[]", .fieldsNotObject), ("{}", .name(nil)), (#"{"name":7,"expires":5}"#, .name(nil)),
      (#"{"name":"reboot","expires":5}"#, .name("reboot")), (#"{"name":"Flush","expires":5}"#, .name("Flush")),
      (#"{"name":"flush"}"#, .expires), (#"{"name":"flush","expires":"5"}"#, .expires),
      (#"{"name":"flush","expires":5.5}"#, .expires), (#"{"name":"flush","expires":0}"#, .expires),
      (#"{"name":"flush","expires":-1}"#, .expires), (#"{"name":"flush","expires":9223372036854775808}"#, .expires),
      (#"{"name":"flush","expires":5,"when":1}"#, .unknownMember("when")),
      (#"{"name":"flush","expires":5,"args":[]}"#, .argsNotObject),
      (#"{"name":"flush","expires":5,"args":null}"#, .argsNotObject),
      (#"{"name":"flush","expires":5,"args":{"":1}}"#, .argumentName),
      (#"{"name":"flush","expires":5,"args":{"a b":1}}"#, .argumentName),
      (#"{"name":"flush","expires":5,"args":{"a\n":1}}"#, .argumentName),
      (#"{"name":"flush","expires":5,"args":{"a":1.5}}"#, .argumentValue("a")),
      (#"{"name":"flush","expires":5,"args":{"a":null}}"#, .argumentValue("a")),
      (#"{"name":"flush","expires":5,"args":{"a":{}}}"#, .argumentValue("a")),
      (#"{"name":"flush","expires":5,"args":{"a":9223372036854775808}}"#, .argumentValue("a")),
      (#"{"name":"flush","expires":5,"signature":"AAAA"}"#, .signature),
      (#"{"name":"flush","expires":5,"signature":7}"#, .signature),
    ] as [(String, CommandFault)])
  func faults(fields: String, fault: CommandFault) {
    #expect(throws: fault) { try Self.read(fields) }
    #expect(!fault.message.isEmpty)
  }

  @Test("names, values, their number and the whole are bounded") func bounds() throws {
    func fields(_ args: [String]) -> String {
      #"{"name":"run","expires":5,"args":{\#(args.joined(separator: ","))}}"#
    }
    func text(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }
    #expect(try Self.read(fields((1...16).map { #""a\#($0)":1"# })).args.count == 16)
    #expect(throws: CommandFault.tooManyArguments(17)) { try Self.read(fields((1...17).map { #""a\#($0)":1"# })) }
    #expect(try Self.read(fields([#""\#(text(64))":"\#(text(1024))""#])).args.count == 1)
    #expect(throws: CommandFault.argumentName) { try Self.read(fields([#""\#(text(65))":1"#])) }
    #expect(throws: CommandFault.argumentValue("a")) { try Self.read(fields([#""a":"\#(text(1025))""#])) }
    let most = CommandRequest.fieldsBytesMax - fields([#""a":"""#, #""b":"""#, #""c":"""#, #""d":"""#]).utf8.count
    func four(_ rest: Int) -> String {
      fields(["a", "b", "c"].map { #""\#($0)":"\#(text(1024))""# } + [#""d":"\#(text(rest))""#])
    }
    #expect(try Self.read(four(most - 3 * 1024)).fields.bytes.count == CommandRequest.fieldsBytesMax)
    #expect(throws: CommandFault.tooLarge(bytes: CommandRequest.fieldsBytesMax + 1)) {
      try Self.read(four(most - 3 * 1024 + 1))
    }
  }

  @Test("a sender's command expires within 30 days") func lifetime() throws {
    var request = try Self.read(#"{"name":"flush","expires":5}"#)
    request.expires = Self.now + 30 * 86_400_000
    try request.check(now: Self.now)
    request.expires += 1
    #expect(throws: CommandFault.expiresTooLate) { try request.check(now: Self.now) }
    request.expires = 0
    #expect(throws: CommandFault.expires) { try request.check(now: Self.now) }
    request.expires = .max
    try request.check(now: .max)
  }

  @Test("an answer replaces an earlier one, and leaves the command as it is") func answers() throws {
    let fields = try JSONValue(parsing: #"{"name":"flush","expires":5.0,"more":[1],"state":"running","stateTime":1}"#)
    let answer = CommandAnswer(.done, result: ["exit": 0], stateTime: 7)
    let written = answer.written(into: fields)
    #expect(
      written.text
        == #"{"name":"flush","expires":5.0,"more":[1],"state":"done","result":{"exit":0},"stateTime":7}"#)
    #expect(CommandAnswer(fields: written) == answer)
    #expect(CommandAnswer(fields: fields) == CommandAnswer(.running, stateTime: 1))
    for text in ["{}", #"{"state":"begun","stateTime":1}"#, #"{"state":"done"}"#, "[]"] {
      #expect(CommandAnswer(fields: try JSONValue(parsing: text)) == nil)
    }
    #expect(CommandState.allCases.filter { !$0.isFinal } == [.accepted, .running])
    #expect(try Self.read(#"{"name":"flush","expires":5,"state":"done","result":"","stateTime":1}"#).name == .flush)
  }

  @Test("the built-in table has a name that nothing else can have") func tableName() {
    #expect(RecordTableName("prism.command") == .command)
    #expect(RecordTableName.command.isBuiltIn)
    for text in ["prism.commands", "prism.", "a.b", "Prism.command"] { #expect(RecordTableName(text) == nil) }
  }
}
