import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

/// Equality over inputs that were written to break parsers, and over random ones.
@Suite("Columns: any text comes back byte for byte")
struct ColumnPropertyTests {
  /// In the manner of JSONTestSuite: what parsers must accept, must refuse, and may do as they like.
  private static let pieces = [
    "[123e65]", "[0e+1]", "[0e1]", "[ 4]",
    "-0.000000000000000000000000000000000000000000000000000000000000000000000001",
    "[20e1]", "[-0]", "[-123]", "[1E22]", "[1E-2]", "123.456e78", #"{"asd":"sdf","dfg":"fgh"}"#, #"{"a":"b","a":"b"}"#,
    #"{"":0}"#, #"{"foo\u0000bar": 42}"#, "{ \"min\": -1.0e+28, \"max\": 1.0e+28 }", #"{"x":[{"id": "x"}], "id": "y"}"#,
    #"["\u0060\u012a\u12AB"]"#, #"["\uD801\udc37"]"#, #""\\\"\/\b\f\n\r\t""#, #""\uDBFF\uDFFF""#, "\"\u{7f}€𝄞\"",
    "[[]   ]", #"[""]"#, "[false]", "[null, 1, \"1\", {}]", "[1,,,2]", "true", "nul", "tru", "1.", ".5", "-", "--1",
    "01",
    "-01", "1.2.3", "1e", "0x1", "NaN", "Infinity", "+1", #""unterminated"#, #""\"#, "[\"a", "[1", "{\"a\":1", "}", "]",
    ",", ":", "\"a\tb\"", "[\u{1}]", "\u{0}", "", " ", "[[[[[[[[[[{\"a\":[[]]}]]]]]]]]]]", "999999999999999999",
    "9223372036854775808", "-9223372036854775808", "123456789012345678.9", "0.000000000000000001", "1.50", "2.000",
    "\"0123456789abcdef\"", "\"0123456789ABCDEF\"", "\"00\"", "\"e-0001\"", "\"e-2\"", "\"\"", #""é""#,
  ]

  @Test("texts of hard values, in shapes and out of them")
  func hard() throws {
    for piece in Self.pieces {
      for other in ["1", "\"ab\"", piece] {
        let lines = (0..<60).flatMap { n in
          [#"{"n":\#(n),"v":\#(n % 3 == 0 ? piece : other),"w":[{"x":\#(piece)}]}"#, #"{"k":\#(other)}"#]
        }
        let text = ColumnTests.bytes(lines + [piece])
        let back = try ColumnTests.roundTrip(text)
        // Where no line is JSON, all stay rows.
        #expect(back == text || back == nil && other == piece, "\(piece) \(other)")
      }
    }
  }

  @Test("random metas, and the same with bytes that changed")
  func random() throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("columns"))
    var columns = 0
    for _ in 0..<300 {
      var metas = RandomMetas(&random)
      var text = ColumnTests.bytes((0..<Int.random(in: 50...400, using: &random)).map { metas.line($0, &random) })
      for _ in 0..<random.pick([0, 0, 3, 40]) {
        text[Int.random(in: 0..<text.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      guard let back = try ColumnTests.roundTrip(text) else { continue }
      columns += 1
      try #require(back == text)
    }
    #expect(columns > 100)
  }
}

/// Metas of some shapes, whose members have a manner each.
private struct RandomMetas {
  private var shapes: [[(key: String, manner: Int)]] = []

  init(_ random: inout SeededRandom) {
    for _ in 0..<Int.random(in: 1...5, using: &random) {
      shapes.append(
        (0..<Int.random(in: 1...9, using: &random)).map { _ in
          (random.pick(["a", "b", "größe", "MONITOR_TYPE", "x.y", ""]), Int.random(in: 0..<15, using: &random))
        })
    }
  }

  mutating func line(_ number: Int, _ random: inout SeededRandom) -> String {
    guard !random.oneIn(40) else { return random.pick(["{}", "", "x", #"{"$common":{"a":1}}"#]) }
    let space = random.oneIn(50) ? " " : ""
    let members = random.pick(shapes).map { #""\#($0.key)":\#(space)\#(value($0.manner, number, &random))"# }
    return "{" + members.joined(separator: ",") + "}"
  }

  private func value(_ manner: Int, _ number: Int, _ random: inout SeededRandom) -> String {
    let noise = UInt64.random(in: 0...UInt64.max, using: &random)
    return switch manner {
    case 0: "\(number)"
    case 1: "\(Int64(bitPattern: noise))"
    case 2: "\(Double(noise % 100_000) / 1000)"
    case 3: "\(Double(bitPattern: noise))"
    case 4: #""\#(String(noise, radix: 16))""#
    case 5: #""\#(Hex.encode(withUnsafeBytes(of: noise, Array.init)))""#
    case 6: #""id-\#(number)""#
    case 7: #""\#(random.pick(["a", "b\\n", "ü", "", "\\u0041"]))""#
    case 8: random.pick(["true", "false"])
    case 9: random.pick(["true", "null", "1", #""x""#])
    case 10: "[\(noise % 4),\"]\"]"
    case 11: #"{"m":[{"k":\#(noise % 9)}],"e":{}}"#
    case 12: #""e\#(String(number + 4096, radix: 16))""#
    case 13: "1700000\(String(number * 450 + 100_000).suffix(6))"
    default: "-\(noise % 50).\(noise % 7)0"
    }
  }
}
