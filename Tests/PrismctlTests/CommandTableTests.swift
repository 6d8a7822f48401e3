import PrismProtocol
import Testing

@testable import prismctl

/// The text of `prismctl command list`.
@Suite("prismctl command list") struct CommandTableTests {
  private static let id = "8f14e45f-ceea-467f-a0f1-bc7b3bd2f3d2"

  private static func record(_ id: String = id, _ more: [JSONValue.Member] = []) -> JSONValue {
    let fields = [JSONValue.Member("name", "collect"), .init("expires", 1_763_700_000_000)] + more
    return ["id": .string(id), "fields": .object(fields)]
  }

  private static func answered(_ state: JSONValue, _ result: JSONValue) -> JSONValue {
    record(id, [.init("state", state), .init("result", result), .init("stateTime", 1_763_700_000_999)])
  }

  private static func lines(_ records: [JSONValue], columns: Int? = nil) -> [String] {
    CommandTable(records, columns: columns).text.split { $0 == "\n" }.map(String.init)
  }

  @Test("a command is a line: its id, name, state, and since when; without an answer it is new")
  func line() {
    #expect(Self.lines([]) == ["no commands"])
    let lines = Self.lines([Self.record()])
    #expect(lines.count == 2 && lines[0].split(separator: " ") == ["ID", "COMMAND", "STATE", "SINCE"])
    #expect(lines[1].split(separator: " ").map(String.init) == [Self.id, "collect", "new", "-"])
    let starts = ["COMMAND", "STATE", "SINCE"].map { Self.column(of: $0, in: lines[0]) }
    #expect(starts == ["collect", "new", "-"].map { Self.column(of: " \($0)", in: String(lines[1])).map { $0 + 1 } })
  }

  private static func column(of word: String, in line: String) -> Int? {
    line.ranges(of: word).last.map { line.distance(from: line.startIndex, to: $0.lowerBound) }
  }

  @Test(
    "the result is below its command: a text as it is, a map as JSON",
    arguments: [
      ("done", ["size": 18], #"  {"size":18}"#), ("refused", "signed commands only", "  signed commands only"),
      ("failed", "interrupted", "  interrupted"),
    ] as [(JSONValue, JSONValue, String)])
  func result(state: JSONValue, result: JSONValue, text: String) throws {
    let lines = Self.lines([Self.answered(state, result), Self.record("c2")])
    try #require(lines.count == 4)
    #expect(lines[1].hasSuffix(" 2025-11-21T04:40:00Z") && lines[1].contains(" \(state.string ?? "") "))
    #expect(lines[2] == text && lines[3].hasPrefix("c2 "))
  }

  @Test("a result with control characters, line feeds and a long line harms no terminal")
  func hostile() {
    let result = "a\u{1B}[31mb\nsecond \(String(repeating: "w ", count: 100))"
    let lines = Self.lines([Self.answered("done", .string(result))], columns: 80)
    #expect(!lines.joined().contains("\u{1B}") && lines.count > 4)
    #expect(lines.dropFirst(2).allSatisfy { $0.count <= 80 && $0.hasPrefix("  ") }, "\(lines)")
  }
}
