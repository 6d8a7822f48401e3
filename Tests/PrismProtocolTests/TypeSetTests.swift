import PrismProtocol
import Testing

@Suite("Types by name and by pattern")
struct TypeSetTests {
  private static func entry(_ text: String) -> ReportType { ReportType(entry: text)! }

  /// Entries in their order, whether each is chosen, and whether a type belongs to the set.
  static let cases: [(entries: [(String, Bool)], type: String, isIn: Bool)] = [
    ([("order", true)], "order", true),
    ([("order", true)], "orders", false),
    ([("order.*", true)], "order.new", true),
    ([("order.*", true)], "order", false),
    ([("order.*", true), ("order.debug", false)], "order.debug", false),
    ([("order.*", false), ("order.debug", true)], "order.debug", true),
    ([("order.*", false), ("order.debug", true)], "order.new", false),
    ([("*", true), ("order.*", false)], "order.new", false),
    ([("*", true), ("order.*", false)], "click", true),
    ([("a?c", true), ("a*", false)], "abc", true),
    ([("a*", false), ("a?c", true)], "abc", false),
    ([("*", false), ("order", true)], "click", false),
  ]

  @Test("a name counts before a pattern, the first pattern before others, and * last", arguments: cases)
  func contains(entries: [(String, Bool)], type: String, isIn: Bool) {
    let set = TypeSet(entries.map { (Self.entry($0.0), $0.1) })
    #expect(set.contains(Self.entry(type)) == isIn)
    #expect(set.isEmpty == !entries.contains { $0.1 })
  }

  @Test("without a chosen pattern the set is its names")
  func names() {
    let set = TypeSet([(Self.entry("order"), true), (Self.entry("*"), false)])
    #expect(set == [Self.entry("order")] && set.names == [Self.entry("order")])
    #expect(TypeSet([(Self.entry("*"), true)]).names == nil)
  }

  @Test("a pattern is no type of a report", arguments: ["*", "order.*", "?", "a*b?"])
  func patterns(text: String) {
    #expect(ReportType(text) == nil && ReportType(entry: text)?.isPattern == true)
  }

  @Test("neither a name nor a pattern", arguments: ["", "a b", "order/*", ".order", "ö*"])
  func neither(text: String) { #expect(ReportType(entry: text) == nil) }
}
