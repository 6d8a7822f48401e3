import PrismProtocol
import Testing

@testable import PrismCollector

@Suite("Conditions on the meta")
struct MetaConditionTests {
  @Test(
    "a path, a sign and a value",
    arguments: [
      ("ms >= 100", ["ms"], .atLeast, "100"), ("net.ms>=100", ["net", "ms"], .atLeast, "100"),
      ("a=b=c", ["a"], .equal, "b=c"), ("a != ", ["a"], .notEqual, ""), ("stack", ["stack"], .exists, ""),
      (#""http.route" ~ /cart"#, ["http.route"], .contains, "/cart"), ("a.\"b c\".d<1", ["a", "b c", "d"], .less, "1"),
      ("größe<=1", ["größe"], .atMost, "1"), (" a > b c ", ["a"], .more, "b c"),
      ("url ~ =5", ["url"], .contains, "=5"), ("a != \u{301}x", ["a"], .notEqual, "\u{301}x"),
      ("a =\u{338}", ["a"], .equal, "\u{338}"),
    ] as [(String, [String], MetaCondition.Comparison, String)])
  func read(text: String, path: [String], comparison: MetaCondition.Comparison, value: String) throws {
    let condition = try MetaCondition(text)
    #expect(condition.path == path && condition.comparison == comparison && condition.value == value)
  }

  @Test(
    "what is no condition is refused",
    arguments: [
      "", " ", "=1", "a..b", "a.", ".a", "\"a", "\"\"=1", "a b", "a\\b=1", "a\nb=1", "a=\0",
      String(repeating: "a.", count: 8) + "a", String(repeating: "a", count: 129),
      "a=" + String(repeating: "x", count: 1025), "ms == 100", "ms > = 2", "ms !== 2", "ms <=\u{20}= 2",
      "ms >", "ms <= ", "text ~",
    ])
  func refused(text: String) {
    #expect(throws: MetaCondition.Fault.self) { try MetaCondition(text) }
  }

  @Test(
    "only a finite number in JSON's form is a number",
    arguments: [
      ("12", true), ("-1.5e3", true), ("1e999", false), ("0x10", false), ("inf", false), ("+1", false), ("01", false),
      ("", false), ("true", false),
    ])
  func numbers(text: String, isNumber: Bool) throws {
    #expect((try MetaCondition("a=" + text).number != nil) == isNumber)
  }
}
