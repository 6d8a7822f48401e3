import PrismProtocol
import Testing

@Suite("Numbers of any size") struct ExactNumberTests {
  private func number(_ text: String) -> ExactNumber { ExactNumber(Array(text.utf8).span) }

  /// Ascending; the texts of one line are equal.
  private static let lines = [
    ["-1e400", "-10e399"], ["-9223372036854775809"], ["-9223372036854775808"], ["-12.5", "-125e-1"], ["-1"],
    ["-0.001", "-1e-3"], ["0", "-0", "0.0", "0e9", "-0.00e5"], ["1e-400"], ["0.5", "5e-1", "0.50"],
    ["1", "1.0", "10e-1"],
    ["1.5", "1.50"], ["99.99"], ["100", "1e2", "1E+2", "100.000"], ["999999999999999999"],
    ["1000000000000000000", "1e18"], ["9223372036854775807"], ["9223372036854775808"], ["9223372036854775809"],
    ["18446744073709551616", "1.8446744073709551616e19"], ["1e400"], ["1e99999999999999999999"],
  ]

  @Test("are compared by their digits, in any form") func order() {
    for (place, line) in Self.lines.enumerated() {
      for a in line {
        for (other, texts) in Self.lines.enumerated() {
          for b in texts {
            #expect((number(a) == number(b)) == (place == other), "\(a) \(b)")
            #expect((number(a) < number(b)) == (place < other), "\(a) \(b)")
          }
        }
      }
    }
  }
}

@Suite("Fields of metas") struct MetaFieldTests {
  @Test(
    "a path leads to the last value of its keys, through objects only",
    arguments: [
      (#"{"a":1}"#, ["a"], "1"), (#"{"a":1,"a":2}"#, ["a"], "2"), (#"{"a":{"b":1,"b":"x"}}"#, ["a", "b"], #""x""#),
      (#"{"a":{"b":1},"a":{}}"#, ["a", "b"], "no field"), (#"{"a":[{"b":1}]}"#, ["a", "b"], "no field"),
      (#"{"b":1}"#, ["a"], "no key"), ("[1]", ["a"], "no key"), (#"{"a":1"#, ["a"], "no key"), ("", ["a"], "no key"),
      (#" { "a" : { "b" : [ 1 ] } } "#, ["a"], #"{ "b" : [ 1 ] }"#), (#"{"\u0061":true}"#, ["a"], "true"),
      (#"{"a":{"b":null}}"#, ["a", "b"], "null"), (#"{"a":"b"}"#, ["a", "b"], "no field"),
    ])
  func find(meta: String, path: [String], expected: String) {
    let text = Array(meta.utf8)
    switch MetaField.find(path.map { Array($0.utf8) }, in: text.span) {
    case .noKey: #expect(expected == "no key")
    case .noField: #expect(expected == "no field")
    case .field(let field): #expect(String(decoding: text[field.range], as: UTF8.self) == expected)
    }
  }

  @Test("the bytes of a string have no quotes and no escapes") func strings() throws {
    let text = Array(#"{"a":"x\u0000\"\ud83d\ude00"}"#.utf8)
    guard case .field(let field) = MetaField.find([Array("a".utf8)], in: text.span) else {
      Issue.record("there is a field")
      return
    }
    #expect(field.kind == .string && field.bytes(in: text.span) == Array("x\0\"\u{1F600}".utf8))
  }
}
