import PrismProtocol
import Testing

@testable import PrismAdmission

@Suite("Metas that are mended") struct MendedMetaTests {
  @Test(
    "a sound meta stays as it is",
    arguments: [#"{"a":1}"#, " {\r\n\"a\":1}\n", #"{"a":1,"a":"\ud83d\ude00"}"#, #"{"a":"é"}"#])
  func sound(text: String) {
    let mended = MendedMeta(Array(text.utf8), bytesMax: Limits.metaBytesMax)
    #expect(mended.meta == Array(text.utf8) && mended.payload == nil)
  }

  private static let latin1 = Array(#"{"path":"/home/caf"#.utf8) + [0xE9] + Array(#"/x"}"#.utf8)
  private static let cutUTF8 = Array(#"{"m":"boom "#.utf8) + [0xF0, 0x9F, 0x98] + Array(#""}"#.utf8)
  private static let mark = [UInt8]([0xEF, 0xBB, 0xBF]) + Array(#"{"a":1}"#.utf8)

  @Test(
    "one bad byte, a mark, a control character or half an emoji is mended, and the meta says so",
    arguments: [
      (latin1, #"{"path":"/home/caf\#u{FFFD}/x","MENDED":"utf8"}"#),
      (cutUTF8, #"{"m":"boom \#u{FFFD}","MENDED":"utf8"}"#), (mark, #"{"a":1,"MENDED":"utf8"}"#),
      (Array(#"{"m":"boom \ud83d"}"#.utf8), #"{"m":"boom \ufffd","MENDED":"utf8"}"#),
      (Array(#"{"m":"\ude00 \ud83d\u0041"}"#.utf8), #"{"m":"\ufffd \ufffd\u0041","MENDED":"utf8"}"#),
      (Array("{\"m\":\"a\tb\u{1}\"}".utf8), #"{"m":"a\u0009b\u0001","MENDED":"json"}"#),
      (Array(#"{"p":"C:\windows\q"}"#.utf8), #"{"p":"C:\\windows\\q","MENDED":"json"}"#),
      (Array("{\"a\":1}\0".utf8), #"{"a":1,"MENDED":"utf8"}"#),
    ])
  func mended(text: [UInt8], meta: String) throws {
    let mended = MendedMeta(text, bytesMax: Limits.metaBytesMax)
    #expect(String(decoding: mended.meta, as: UTF8.self) == meta)
    #expect(mended.payload == nil)
    _ = try JSONValue(parsing: mended.meta)
  }

  @Test(
    "a text that is no object is the payload, and the meta has its beginning",
    arguments: [
      "{", "", "{}", "[1]", #"{"a":1}{"b":2}"#, #"{"v":NaN}"#, #"{"a":1,}"#, "Segmentation \u{7}fault\n", #"{"a":"b"#,
    ])
  func text(text: String) throws {
    let mended = MendedMeta(Array(text.utf8), bytesMax: Limits.metaBytesMax)
    #expect(try JSONValue(parsing: mended.meta) == .object([.init("TEXT", .string(text)), .init("MENDED", "text")]))
    #expect(mended.payload == (text.isEmpty ? nil : Array(text.utf8)))
  }

  @Test(
    "a meta of megabytes with a fault that can be mended keeps its short members",
    arguments: [latin1, cutUTF8, mark, Array(#"{"m":"a\q"}"#.utf8)], [300_000, 3_000_000])
  func longAndFaulty(text: [UInt8], bytes: Int) throws {
    let long = Array(#","log":""#.utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: bytes) + Array(#""}"#.utf8)
    let mended = MendedMeta(text.dropLast() + long, bytesMax: 10_000)
    let meta = try JSONValue(parsing: mended.meta)
    let short = try JSONValue(parsing: MendedMeta(text, bytesMax: Limits.metaBytesMax).meta)
    #expect(meta.object?.first == short.object?.first && mended.payload == text.dropLast() + long)
    let marks = [short["MENDED"]?.string, "cut"].compactMap { $0 }.joined(separator: ", ")
    #expect(meta["MENDED"]?.string == marks && mended.meta.count <= 10_000)
  }

  @Test("a text of megabytes that a repair makes larger by far is not repaired") func bomb() throws {
    let text = Array(#"{"a":1,"log":""#.utf8) + [UInt8](repeating: 1, count: 1_000_000) + Array(#""}"#.utf8)
    let mended = MendedMeta(text, bytesMax: 10_000)
    #expect(try JSONValue(parsing: mended.meta)["MENDED"] == "cut" && mended.payload == text)
  }

  @Test("a meta over the limit is cut, and the whole of it is the payload", arguments: [1000, 3072, 10_240])
  func cut(bytesMax: Int) throws {
    let long = #"{"a":1,"m":"\#(String(repeating: "x", count: 20_000))"}"#
    let many = "{" + (0..<3000).map { #""k\#($0)":\#($0)"# }.joined(separator: ",") + "}"
    for text in [long, many, String(repeating: "\u{1}", count: 20_000)] {
      let mended = MendedMeta(Array(text.utf8), bytesMax: bytesMax)
      #expect(mended.meta.count <= bytesMax && mended.payload == Array(text.utf8))
      let meta = try JSONValue(parsing: mended.meta)
      #expect(meta["MENDED"]?.string == (text.first == "{" ? "cut" : "text"))
      if text == long { #expect(meta["a"] == 1) }
    }
  }

  @Test(
    "of a meta of any size the short members stay, and what is left out has a number",
    arguments: [MendedMeta.readBytesMax + 1, 5_000_000], [Limits.metaBytesMax - 6000, 3000])
  func large(bytes: Int, bytesMax: Int) throws {
    let text = #" {"reason":"SIGSEGV","log":"\#(String(repeating: "x", count: bytes))","n":{"m":1}}"# + "\n"
    let mended = MendedMeta(Array(text.utf8), bytesMax: bytesMax)
    let meta = try JSONValue(parsing: mended.meta)
    #expect(meta["reason"] == "SIGSEGV" && meta["n"]?["m"] == 1 && meta["MENDED"] == "cut" && meta["TEXT"] == nil)
    let kept = try #require(meta["log"]?.string?.utf8.count)
    #expect(meta["TRUNCATED"]?.int == bytes - kept && kept > bytesMax / 2 && mended.meta.count <= bytesMax)
    #expect(mended.payload == Array(text.utf8))
  }

  @Test(
    "of a large text that is no object the beginning stays",
    arguments: [#"{"a":"#, "[{", #"{"a":1}{"b":""#, "?", #"{"a":NaN,"b":""#])
  func largeText(head: String) throws {
    for tail in ["", "\"}", "}]"] {
      let text = head + String(repeating: "?", count: MendedMeta.readBytesMax) + tail
      let mended = MendedMeta(Array(text.utf8), bytesMax: 4096)
      let meta = try JSONValue(parsing: mended.meta)
      #expect(meta["MENDED"] == "cut" && meta["TEXT"]?.string.map { text.hasPrefix($0) } == true)
    }
  }

  /// The refusal of a report; `store_full` where admission took it.
  private static func answer(_ text: String, namespace: String, cuts: Bool) -> Refusal? {
    var mending = Mending()
    (mending.cuts, mending.waits) = (cuts, [.unknownNamespace])
    let source = SubmissionSource(peer: AdmissionSupport.peer, mending: mending, sessionID: "s")
    let report = Submission("order", in: namespace, members: Array(text.utf8).span, from: source)
    var group = SubmittedGroup(SubmissionGroup([report], userID: 1, isReserved: true))
    var turn = WorkTurn.unbounded
    let isDone = group.admit(
      within: &turn, AdmissionRules(AdmissionSupport.snapshot()), AdmissionSupport.facts,
      unixMilliseconds: AdmissionSupport.now)
    #expect(isDone)
    _ = group.takeCommit()
    return group.settle(nil, failure: Refusal(.storeFull, ""))[0].refusal
  }

  /// It is no JSON: a reader refuses it for that.
  private static let long = String(repeating: "?", count: 5 * Limits.metaBytesMax)

  @Test("a meta that is too large by far is not read: all others would wait")
  func unread() {
    #expect(Self.answer("?", namespace: "shop", cuts: false)?.code == .badRequest)
    #expect(Self.answer(Self.long, namespace: "shop", cuts: false)?.code == .metaTooLarge)
  }

  @Test("a long meta is cut and taken, and waits where its namespace is missing", arguments: [1, 6])
  func longAndWaiting(size: Int) {
    let text = #""a":""# + String(repeating: "x", count: size * 5 * Limits.metaBytesMax) + "\""
    #expect(Self.answer(text, namespace: "shop", cuts: true)?.code == .storeFull)
    let waiting = Self.answer(text, namespace: "missing", cuts: true)
    #expect(waiting?.code == .unknownNamespace && waiting?.retryMilliseconds != nil)
  }
}
