import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

@Suite("Columns: lines become columns and come back")
struct ColumnTests {
  static func bytes(_ lines: [String]) -> [UInt8] { Array(lines.joined(separator: "\n").utf8) }

  /// The text that comes back; nil for lines that stay rows.
  static func roundTrip(_ text: [UInt8]) throws -> [UInt8]? {
    guard let (head, bytes, cuts) = ColumnPacker.pack(text) else { return nil }
    #expect(cuts == cuts.sorted() && cuts.allSatisfy { 0..<bytes.count ~= $0 })
    return try ColumnBlock.text(bytes, head)
  }

  /// The kinds of the columns of lines `{"v":…}` with these values, in a block that comes back.
  private static func kind(_ values: [String]) throws -> ColumnKind? {
    let text = bytes(values.map { #"{"v":\#($0)}"# })
    let (head, packed, _) = try #require(ColumnPacker.pack(text))
    #expect(try ColumnBlock.text(packed, head) == text, "\(values.prefix(3))")
    #expect(head.columns == 1)
    return try packed.withUnsafeBufferPointer { packed throws in
      var input = try ColumnInput(packed)
      #expect(try input.number() == 1)
      _ = try input.text()
      _ = try IntegerReader(&input, count: head.lines)
      return ColumnKind(rawValue: try input.byte())
    }
  }

  private static func many(_ value: (Int) -> String) -> [String] { (0..<60).map(value) }
  private static func mixed(_ number: Int) -> UInt64 { UInt64(number + 1) &* 0x9E37_79B9_7F4A_7C15 }

  @Test(
    "values take the column that fits them, and each comes back as it was written",
    arguments: [
      (.constant, many { _ in "1.50" }), (.constant, many { _ in #""a\u00e9""# }),
      (.numbers, many { "\($0 * $0 - 30)" }), (.numbers, many { "\($0).\($0 % 10)0" }),
      (.numbers, many { $0 % 3 == 0 ? "\($0)" : "\($0).\($0 % 3)" }), (.numbers, many { "-0.0\($0 % 9 + 1)" }),
      (.numbers, many { $0 == 7 ? "999999999999999999" : "-\($0 + 1)" }),
      (.values, many { $0 == 7 ? "1000000000000000000" : "\($0)" }), (.values, many { $0 == 7 ? "1e400" : "\($0)" }),
      (.values, many { $0 == 7 ? "-0" : "\($0)" }), (.values, many { $0 == 7 ? "-0.00" : "\($0).25" }),
      (.values, many { "\($0).\($0 % 2 == 0 ? "50" : "5")" }), (.values, many { $0 == 7 ? "007" : "\($0)" }),
      (.values, many { "12345678901234567890123456789\($0)" }), (.values, many { "\($0)E+\($0)" }),
      (.words, many { $0 % 2 == 0 ? "200" : "null" }), (.words, many { #""\#("abc".prefix($0 % 3 + 1))""# }),
      (.words, many { $0 % 2 == 0 ? "[1, 2]" : #"["]",{"a":1}]"# }),
      (.booleans, many { $0 % 5 == 0 ? "true" : "false" }), (.values, many { $0 == 7 ? "7" : "[\($0)]" }),
      (.strings, many { #""größe \u00e9 \"\#($0)\" \\""# }), (.values, many { $0 == 7 ? "null" : #""x\#($0)y""# }),
      (.hexadecimal, many { #""\#(Hex.encode(withUnsafeBytes(of: mixed($0), Array.init)))""# }),
      (.someHexadecimal, many { $0 == 7 ? #""""# : #""\#(Hex.encode(withUnsafeBytes(of: mixed($0), Array.init)))""# }),
      (.strings, many { #""\#(Hex.encode(withUnsafeBytes(of: mixed($0), Array.init)).uppercased())""# }),
      (.ids, many { #""a-\#(100 - $0)""# }), (.ids, many { #""\#($0)""# }),
      (.ids, many { #""e5-000\#(Hex.encode([UInt8(100 + $0)]))""# }),
    ] as [(ColumnKind, [String])])
  func kinds(kind: ColumnKind, values: [String]) throws {
    #expect(try Self.kind(values) == kind)
  }

  @Test("common information, rare shapes, objects in lists and lines that are no JSON keep their places")
  func shapes() throws {
    let common = [#"{"$common":{"APP_NAME":"a"}}"#, #"{"$common":{"APP_NAME":"b"}}"#]
    let lines: [[String]] = (0..<80).map { n in
      let nested = #"{"d":[{"m":"/","f":\#(n)},{"m":"/x","f":\#(n * 7)}],"e":{},"l":[\#(n)],"n":{"o":null}}"#
      let rare = n == 9 ? #"{"only":"once"}"# : #"{"a":1, "a" : \#(n) ,"a":[]}"#
      let types = ["a", "b"].map { #"{"MONITOR_TYPE":"\#($0)","n":\#(n)}"# }
      return [common[n % 2], nested, rare, n % 20 == 3 ? "no JSON {" : "{}"] + types
    }
    let text = Self.bytes(lines.flatMap { $0 })
    let (head, bytes, _) = try #require(ColumnPacker.pack(text))
    #expect(try ColumnBlock.text(bytes, head) == text)
    #expect(head.lines == 480 && head.textBytes == text.count)
    #expect(bytes.count < text.count / 10)
  }

  @Test(
    "a member is read without its lines, whatever column it is",
    arguments: [
      ["n"], ["MONITOR_TYPE"], ["absent"], ["d"], ["e"], ["e", "p"], ["l"], ["n", "p"], ["n", "o"], ["k"], ["a", "x"],
    ])
  func members(path: [String]) throws {
    let lines: [[String]] = (0..<80).map { n in
      let nested =
        #"{"d":[{"m":"}","f":\#(n)},{"m":"/x","f":\#(n * 7)}],"e":{},"l":[\#(n)],"n":{"o":null,"p":"\#(n)"}}"#
      return [
        #"{"$common":{"n":\#(n % 2),"d":7}}"#, nested, #"{"a":1,"\u006e":\#(n),"b":\#(n)}"#,
        #"{"MONITOR_TYPE":"t","n":\#(n).5,"k":"\#(n),"}"#, #"{"n":\#(n), "spaced":1}"#,
        #"{"odd":\#(n),"n":[\#(n)]}"#,
      ]
    }
    let all = lines.flatMap { $0 }
    for text in [all, Array(all.prefix(40))] {
      let packer = try RestPacker()
      let packed = try packer.pack(Self.bytes(text))
      try packer.read(packed[...], PacketLimits()) { lines in
        #expect(lines.rows == text.indices.filter { !text[$0].hasPrefix(#"{"$common"#) })
        for (shape, places) in lines.shapes.enumerated() {
          let found = try Self.texts(try lines.values(path.map { Array($0.utf8) }, of: shape), path)
          for (place, line) in places.enumerated() {
            let (object, common) = (try JSONValue(parsing: Array(text[line].utf8)), lines.commons[line])
            #expect(common == (text[line].hasPrefix(#"{"$common"#) ? -1 : line / 6 * 6))
            let root = object["$common"] ?? object
            let expected = path.reduce(Optional(root)) { $0?[$1] }
            #expect(try found(place).map { try JSONValue(parsing: $0) } == expected, "\(text[line])")
          }
        }
      }
    }
  }

  /// The values of the lines of a shape, by their places; nil: the line has no such member.
  private static func texts(_ values: PackedLines.Values, _ path: [String]) throws -> (Int) throws -> [UInt8]? {
    let keys = path.map { Array($0.utf8) }
    switch values {
    case .noKey, .noField: return { _ in nil }
    case .one(let value): return { _ in value }
    case .words(let words, let numbers): return { words[numbers[$0]] }
    case .numbers(let numbers, let least, let most):
      return { try PackedLines.text(of: numbers[$0], least: least, most: most) }
    case .texts(let text, let ranges): return { Array(text[ranges[$0]]) }
    case .lines(let text, let ranges):
      return { place in
        let line = text[ranges[place]]
        let keys = PackedLines.path(keys, in: line)
        guard case .field(let field) = MetaField.find(keys, in: line.span) else { return nil }
        return Array(line[line.startIndex + field.range.lowerBound..<line.startIndex + field.range.upperBound])
      }
    }
  }

  @Test("fewer than 50 lines, and lines without a shape, stay rows")
  func rows() throws {
    let lines = (0..<50).map { #"{"v":\#($0)}"# }
    #expect(ColumnPacker.pack(Self.bytes(Array(lines.dropLast()))) == nil)
    #expect(ColumnPacker.pack(Self.bytes(lines)) != nil)
    #expect(ColumnPacker.pack(Self.bytes([String](repeating: "{}", count: 80))) == nil)
    for count in [80, 2000] { #expect(ColumnPacker.pack(Self.bytes((0..<count).map { #"{"\#($0)":1}"# })) == nil) }
    let mixed = (0..<2000).map { $0 % 3 == 0 ? #"{"\#($0)":1}"# : #"{"a":\#($0)}"# }
    #expect(try Self.roundTrip(Self.bytes(mixed)) == Self.bytes(mixed))
  }

  @Test("integers come back in each mode", arguments: [[Int64]](modes))
  func integers(values: [Int64]) throws {
    var runs = ColumnRuns()
    var copy = values
    copy.withUnsafeMutableBufferPointer { IntegerColumn.append($0, to: &runs) }
    let bytes = runs.joined().bytes
    try bytes.withUnsafeBufferPointer { bytes throws in
      var input = try ColumnInput(bytes)
      var reader = try IntegerReader(&input, count: values.count)
      #expect(input.isAtEnd)
      #expect(values.map { _ in reader.next(bytes) } == values)
    }
  }

  private static let modes: [[Int64]] = [
    [5], [.min, .max], (0..<300).map { Int64(bitPattern: mixed($0)) }, (0..<300).map { Int64($0) * 3 },
    (0..<300).map { Int64($0 * $0) }, (0..<40).map { $0 % 2 == 0 ? .min : .max },
    (0..<300).map { Int64(truncatingIfNeeded: 1 << $0 % 64) }, (0..<9).map { $0 == 4 ? .max : -1 },
  ]

  @Test("each mode is chosen where it is the least")
  func modesChosen() {
    func mode(_ value: (Int) -> Int64) -> IntegerColumn.Mode {
      (0..<200).map(value).withUnsafeBufferPointer { IntegerColumn.mode(of: $0) }
    }
    var random = SeededRandom(seed: 1)
    let noise = (0..<200).map { _ in Int64.random(in: 0..<4096, using: &random) }
    #expect(mode { noise[$0] } == .offsets)
    #expect(mode { Int64(1_700_000_000_000 + $0 * 1000) + noise[$0] % 16 } == .differences)
    #expect(mode { Int64($0 * $0) } == .secondDifferences)
  }
}
