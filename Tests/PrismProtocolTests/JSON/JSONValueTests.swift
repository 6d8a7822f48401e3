import PrismBase
import PrismProtocol
import Testing

@Suite("JSON as a tree")
struct JSONValueTests {
  @Test(
    "what is JSON is read, and written again as the same value",
    arguments: [
      "null", "true", "false", "0", "-0", "12", "-1.5e+30", "1e999", "18446744073709551615", #""""#, #""größe ✓ 😀""#,
      "[]", "[1,[2,[]],{}]", "{}", #"{"a":1,"b":{"c":[null]}}"#, #"{"":""}"#,
    ])
  func roundTrips(text: String) throws {
    #expect(try JSONValue(parsing: text).text == text)
  }

  @Test(
    "what is not JSON is refused at the byte where it goes wrong",
    arguments: [
      ("", 0), (" ", 1), ("nul", 0), ("truex", 4), ("01", 1), ("-", 1), ("1.", 2), ("1e", 2), (".5", 0), ("+1", 0),
      (#"{"a"}"#, 4), (#"{"a":1,}"#, 7), ("{a:1}", 1), ("[1,]", 3), ("[1 2]", 3), ("[1", 2), (#"{"a":1"#, 6),
      (#""a"#, 2), ("\"\u{1}\"", 1), (#""\x""#, 2), (#""\u12""#, 3), (#""\ud800""#, 3), (#""\udc00""#, 3),
      (#""\ud800\u0041""#, 3), (#"{"a":1,"a":2}"#, 7), ("1 1", 2), ("NaN", 0), ("'a'", 0),
    ])
  func refused(text: String, offset: Int) {
    #expect { try JSONValue(parsing: text) } throws: { ($0 as? JSONError)?.offset == offset }
  }

  @Test("bytes that are not UTF-8 are refused", arguments: [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82]])
  func invalidUTF8(bytes: [UInt8]) {
    #expect(throws: JSONError.self) { try JSONValue(parsing: [0x22] + bytes + [0x22]) }
  }

  @Test("64 levels are read, one more is refused")
  func depth() {
    func nested(_ levels: Int) -> String {
      String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
    #expect(throws: Never.self) { try JSONValue(parsing: nested(64)) }
    #expect(throws: JSONError.self) { try JSONValue(parsing: nested(65)) }
  }

  @Test("escapes are read as what they stand for")
  func escapes() throws {
    let value = try JSONValue(parsing: #""\"\\\/\b\f\n\r\t\u0041\ud83d\ude00""#)
    #expect(value.string == "\"\\/\u{8}\u{c}\n\r\tA😀")
  }

  @Test("control characters and quotes are escaped when written")
  func writesEscapes() {
    #expect(JSONValue.string("a\"\\\n\u{1}\u{7f}").text == #""a\"\\\n\u0001\u007f""#)
    for value in UInt32(0)...0x1F700 {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = JSONValue.string(String(scalar) + "\n").text
      #expect(text.utf8.count == JSONValue.escapedBytes(scalar) + 4)
      #expect(OutputText.isControl(scalar) == text.hasPrefix(#""\u"#) || "\n\r\t".unicodeScalars.contains(scalar))
    }
  }

  @Test("members are found by key, and keep their order when printed for people")
  func pretty() {
    let value: JSONValue = ["b": 1, "a": [true, []], "c": [:]]
    #expect(value["a"]?.array?.first?.bool == true)
    #expect(value["d"] == nil)
    #expect(value.prettyText == "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    []\n  ],\n  \"c\": {}\n}")
  }
}
