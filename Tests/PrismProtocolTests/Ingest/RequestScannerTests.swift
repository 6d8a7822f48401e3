import PrismProtocol
import Testing

@Suite("A request line is taken apart")
struct RequestScannerTests {
  static let reserved = ReservedKeys(["SYS_BRAND", "APP_NAME", "IS_BIZ"])

  static func scan(_ line: String) -> ScannedLine {
    scan(Array(line.utf8))
  }

  static func scan(_ line: [UInt8]) -> ScannedLine { RequestScanner.scan(line.span, reserved: reserved) }

  static func report(_ line: String) throws -> ScannedReport {
    guard case .report(let report) = try scan(line).request.get() else { throw Unexpected() }
    return report
  }

  struct Unexpected: Error {}

  @Test("every field of a report is found")
  func fields() throws {
    let line =
      #" {"namespace":"shop","type":"order","meta": {"a":1, "b":[{}]} ,"payloadBytes":5,"reportId":"a-1_Z","createdTime":1732154081000}"#
      + "\r"
    let report = try Self.report(line)
    let bytes = Array(line.utf8)
    func text(_ string: ScannedString?) -> String? { string?.string(in: bytes.span) }
    #expect(text(report.namespace) == "shop")
    #expect(text(report.type) == "order")
    #expect(text(report.reportID) == "a-1_Z")
    #expect(report.createdTime == 1_732_154_081_000)
    #expect(report.payload == .following(bytes: 5))
    guard case .members(let range, mayCollide: false) = report.meta else { throw Unexpected() }
    #expect(String(decoding: bytes[range], as: UTF8.self) == #""a":1, "b":[{}]"#)
    #expect(Self.scan(line).followingBytes == 5)
  }

  @Test("escapes are read as what they stand for, in fields' names too")
  func escapes() throws {
    let line = #"{"\u0074ype":"n\u0065t","meta":{"a":1},"reportId":"\u0061"}"#
    let report = try Self.report(line)
    #expect(report.type.string(in: Array(line.utf8).span) == "net")
    #expect(report.reportID?.string(in: Array(line.utf8).span) == "a")
  }

  @Test(
    "what is wrong with a line is said, with the field",
    arguments: [
      ("", "not a JSON object: not JSON at byte 0: an object is expected"),
      ("[]", "not a JSON object: not JSON at byte 0: an object is expected"),
      ("{}", "`type` is missing"),
      (#"{"type":"a""#, "not a JSON object: not JSON at byte 11: the text ends within an object"),
      (#"{"type":"a"} x"#, "not a JSON object: not JSON at byte 13: something follows the object"),
      (#"{"type":1,"meta":{}}"#, "`type` must be a string"),
      (#"{"type":"a","namespace":null,"meta":{}}"#, "`namespace` must be a string"),
      (#"{"type":"a","type":"a","meta":{}}"#, "`type` occurs twice"),
      (#"{"type":"a","\u0074ype":"a","meta":{}}"#, "`type` occurs twice"),
      (
        #"{"type":"a","metta":{}}"#,
        "unknown field `metta`; known are namespace, type, meta, payloadBytes, payload, reportId, createdTime"
      ),
      (#"{"type":"a","payloadBytes":-1}"#, "`payloadBytes` must be a whole number of bytes, 0 or more"),
      (#"{"type":"a","payloadBytes":1.5}"#, "`payloadBytes` must be a whole number of bytes, 0 or more"),
      (#"{"type":"a","payloadBytes":"5"}"#, "`payloadBytes` must be a number"),
      (#"{"type":"a","payload":5}"#, "`payload` must be a string"),
      (#"{"type":"a","payload":"","payloadBytes":0}"#, "give `payload` or `payloadBytes`, not both"),
      (#"{"type":"a","reportId":""}"#, "`reportId` must be 1 to 64 of A-Z a-z 0-9 _ -"),
      (#"{"type":"a","reportId":"a b"}"#, "`reportId` must be 1 to 64 of A-Z a-z 0-9 _ -"),
      (#"{"type":"a","createdTime":-1}"#, "`createdTime` must be milliseconds since 1970, up to the year 9999"),
      (#"{"type":"a","createdTime":1e999}"#, "`createdTime` must be milliseconds since 1970, up to the year 9999"),
      (
        #"{"type":"a","createdTime":1763700000000000}"#,
        "`createdTime` must be milliseconds since 1970, up to the year 9999; this looks like microseconds"
      ),
      (
        #"{"type":"a","createdTime":1763700000000000000}"#,
        "`createdTime` must be milliseconds since 1970, up to the year 9999; this looks like nanoseconds"
      ),
      (#"{"hello":1}"#, "`hello` must be an object"),
      (#"{"hello":{},"type":"a"}"#, "`hello` must be the only field of its line"),
      (#"{"isGather":true}"#, "`isGather` must be a string"), (#"{"watch":true}"#, "`watch` must be an object"),
      (#"{"watch":{},"hello":{}}"#, "`hello` must be the only field of its line"),
      (#"{"common":false}"#, "`common` must be true"),
    ])
  func refused(line: String, message: String) {
    #expect(throws: Refusal(.badRequest, message)) { try Self.scan(line).request.get() }
  }

  @Test("a name of 64 bytes is a report id, one of 65 is not")
  func reportIDLength() throws {
    let line = { #"{"type":"a","meta":{"a":1},"reportId":"\#(String(repeating: "x", count: $0))"}"# }
    #expect(try Self.report(line(64)).reportID?.range.count == 64)
    #expect(throws: Refusal.self) { try Self.scan(line(65)).request.get() }
  }

  @Test(
    "a refused line still tells how many bytes follow it", arguments: [#""type":1"#, #""x":1"#, "\"type\":\"\u{FF}\""])
  func followingBytes(field: String) {
    var line = Array("{\(field),\"payloadBytes\":7}".utf8)
    if let index = line.firstIndex(of: 0xC3) { line[index] = 0xFF }  // no UTF-8
    let scanned = Self.scan(line)
    #expect(throws: Refusal.self) { try scanned.request.get() }
    #expect(scanned.followingBytes == 7)
  }

  @Test("a payload longer than any number is as long as can be")
  func hugePayload() {
    #expect(Self.scan(#"{"type":"a","meta":{"a":1},"payloadBytes":99999999999999999999}"#).followingBytes == .max)
  }

  @Test("64 levels are read, one more is refused")
  func depth() {
    func line(_ levels: Int) -> String {
      let inner = levels - 2  // the line's own object, the meta
      let (opening, closing) = (String(repeating: "[", count: inner), String(repeating: "]", count: inner))
      return #"{"type":"a","meta":{"a":\#(opening)\#(closing)}}"#
    }
    #expect(throws: Never.self) { try Self.scan(line(64)).request.get() }
    #expect(throws: Refusal.self) { try Self.scan(line(65)).request.get() }
  }

  @Test(
    "a meta that may collide is marked, an ordinary one is not",
    arguments: [
      (#"{"a":1,"b":2}"#, false), (#"{"SYS_BRAND":1}"#, true), (#"{"\u0053YS_BRAND":1}"#, true),
      (#"{"a":1,"a":2}"#, true), (#"{"a":{"SYS_BRAND":1}}"#, false), (#"{"":1}"#, false),
      (#"{"sys_brand":1,"net":2,"ms":3,"url":4,"code":5}"#, false),
    ])
  func collisions(meta: String, mayCollide: Bool) throws {
    guard case .members(_, let found) = try Self.report(#"{"type":"a","meta":\#(meta)}"#).meta else {
      throw Unexpected()
    }
    #expect(found == mayCollide)
  }

  @Test("members are separated with their exact text; of a repeated key the last one counts")
  func members() throws {
    let text = Array(#" "a" : 1.50 , "\u0062":{"x":[",}"]},"a":"é" "#.utf8)
    let members = MetaMembers(text.span, 0..<text.count)
    #expect(members.members.map(\.key) == ["b", "a"])
    #expect(
      String(decoding: members.joined(text.span) { _ in true }, as: UTF8.self) == #""\u0062":{"x":[",}"]},"a":"é""#)
    #expect(members.joined(text.span) { $0 != "b" } == Array(#""a":"é""#.utf8))
  }

  @Test(
    "a line that is too long is refused for what its beginning shows",
    arguments: [
      (#"{"type":"a","payload":"AAAA"#, RefusalCode.payloadTooLarge), (#"{"meta":{"a":"xxx"#, .metaTooLarge),
      (#"{"type":"xxxxx"#, .badRequest), ("xxxxxxxxx", .badRequest),
    ])
  func tooLong(beginning: String, code: RefusalCode) {
    #expect(RequestScanner.refusal(ofTooLong: Array(beginning.utf8).span, bytesMax: 5).code == code)
  }
}
