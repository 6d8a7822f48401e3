import PrismControl
import PrismProtocol
import Testing

@testable import prismctl

@Suite("prismctl tail")
struct TailTests {
  private static func report(_ changes: [JSONValue.Member] = []) -> JSONValue {
    let members: [JSONValue.Member] = [
      .init("time", "2026-11-21T10:20:30.456Z"), .init("outcome", "stored"), .init("code", .null),
      .init("namespace", "shop"), .init("type", "order"), .init("reportId", "o-1"), .init("metaBytes", 250),
      .init("payloadBytes", .null),
    ]
    return ["report": .object(members.map { member in changes.first { $0.key == member.key } ?? member })]
  }

  @Test("a report's line has when, what became of it, whose it is, its bytes and its id")
  func line() {
    let paint = Paint(isOn: false)
    let words = { (answer: JSONValue) in
      TailLine(AnswerLine(answer), paint).text?.split(separator: " ").map { String($0) }
    }
    #expect(words(Self.report()) == ["10:20:30.456Z", "stored", "shop/order", "250", "o-1"])
    #expect(
      words(Self.report([.init("payloadBytes", 4096)])) == ["10:20:30.456Z", "stored", "shop/order", "250+4.0k", "o-1"])
    let refused = Self.report([
      .init("outcome", "refused"), .init("code", "unknown_type"), .init("metaBytes", .null), .init("reportId", .null),
    ])
    #expect(words(refused) == ["10:20:30.456Z", "unknown_type", "shop/order", "-"])
    #expect(words(["skipped": 12])?.prefix(2) == ["…", "12"])
    #expect(words(["following": true]) == nil)
  }

  @Test(
    "on a terminal a line with an id of the daemon's is no wider than it, with any names",
    arguments: [80, 103, 200])
  func fits(columns: Int) {
    let report = Self.report([
      .init("namespace", .string(String(repeating: "n", count: 64))), .init("payloadBytes", 4096),
      .init("reportId", "e8f7220581f2719ab7ed-0002000000000bba"),
    ])
    let line = TailLine(AnswerLine(report), Paint(isOn: false), columns: columns).text ?? ""
    #expect(line.count <= columns && line.hasSuffix("-0002000000000bba"), "\(line)")
  }

  @Test("what a client calls its report can't command the terminal")
  func escapes() {
    let hostile = Self.report([.init("type", "a\u{1B}[2Jb\nc\u{9B}d\u{202E}e"), .init("reportId", "\u{7}")])
    let text = TailLine(AnswerLine(hostile.printable()), Paint(isOn: false)).text ?? ""
    #expect(text.contains(#"shop/a\u{1b}[2Jb\u{a}c\u{9b}d\u{202e}e"#) && text.hasSuffix(#"\u{7}"#))
    #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x9B })
  }
}
