import PrismBase
import Testing

struct LineRangesTests {
  @Test(
    "a line feed ends a line, and what follows the last one is a line",
    arguments: [
      ("", [0..<0]), ("a", [0..<1]), ("\n", [0..<0, 1..<1]), ("a\n", [0..<1, 2..<2]),
      ("\n\nbc", [0..<0, 1..<1, 2..<4]),
      ("ab\nc\n\nd", [0..<2, 3..<4, 5..<5, 6..<7]),
    ])
  func lines(text: String, places: [Range<Int>]) { #expect(Array(LineRanges(Array(text.utf8))) == places) }
}
