import PrismProtocol
import Testing

@Suite("Printable text") struct PrintableTextTests {
  private static let hostile = "a\u{1B}[31m\u{9B}m\u{202E}\u{2066}\u{7F}\"\\\n\r\t\u{0}é"

  @Test("JSON that is written has no control characters, and loses nothing") func json() throws {
    let value: JSONValue = [Self.hostile: [.string(Self.hostile)]]
    let key = JSONValue.object([.init(Self.hostile, .string(Self.hostile))])
    for value in [value, key] {
      #expect(value.text.printable == value.text)
      #expect(value.prettyText.printableLines == value.prettyText)
      #expect(try JSONValue(parsing: value.text) == value)
      #expect(try JSONValue(parsing: value.prettyText) == value)
    }
  }

  @Test("JSON text of others becomes one line of the same value") func foreignJSON() throws {
    let text = "{\"a\u{202E}\":\r\n\t\"\u{9B}31m\u{7F}\\u001b\"}"
    #expect(text.printableJSON.printable == text.printableJSON)
    #expect(try JSONValue(parsing: text.printableJSON) == JSONValue(parsing: text))
  }

  @Test("every string and key of a tree is made printable; `text` keeps its lines") func tree() {
    let tree: JSONValue = ["text": "a\nb\u{1B}", "other": "a\nb", "\u{1B}": [["\u{202E}": 1]]]
    #expect(
      tree.printable() == [
        "text": "a\nb\\u{1b}", "other": "a\\u{a}b", "\\u{1b}": [["\\u{202e}": 1]],
      ])
  }
}
