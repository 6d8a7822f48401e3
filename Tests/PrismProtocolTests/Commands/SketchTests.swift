import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

/// Sketches and questions (docs/recorder.md, "Sketches").
@Suite struct SketchTests {
  private static let spreads: [(name: String, value: @Sendable (inout SeededRandom) -> Double)] = [
    ("equal", { _ in 42 }), ("bytes", { Double(Int.random(in: 0...1 << 20, using: &$0)) }),
    ("milliseconds", { Double(Int.random(in: 1...100, using: &$0) * Int.random(in: 1...100, using: &$0)) }),
    ("both signs", { Double(Int.random(in: -5000...5000, using: &$0)) }),
    ("fractions", { Double.random(in: 1e-9...1, using: &$0) }),
    ("all magnitudes", { Double(sign: .plus, exponent: Int.random(in: -1000...1000, using: &$0), significand: 1.3) }),
  ]

  /// Without the sum, which is rounded in the order of the numbers.
  private static func exact(_ sketch: Sketch) -> [JSONValue.Member] {
    (sketch.json.object ?? []).filter { $0.key != "sum" }
  }

  private func sketch(_ values: some Sequence<Double>) -> Sketch {
    values.reduce(into: Sketch()) { $0.add($1) }
  }

  @Test("the greatest counts that a device may say are merged for ever: a sum ends at 2^53")
  func greatestCounts() throws {
    let most = 1 << 53
    for members in [#""zeros":\#(most)"#, #""zeros":0,"positive":[5,\#(most)]"#, #""zeros":0,"negative":[5,\#(most)]"#]
    {
      let text = #"{"count":\#(most),"sum":1e308,"min":-9,"max":9,"scale":7,\#(members)}"#
      let other = try #require(Sketch(json: try JSONValue(parsing: text)))
      var (all, coarse) = (Sketch(), other)
      coarse.coarsen(to: -3)
      for _ in 0..<1100 {
        all.merge(other)
        all.merge(coarse)
      }
      #expect(all.count == most && all.sum.isFinite && Sketch(json: all.json) != nil)
      var answer = QuestionAnswer()
      (answer.rows, answer.bytes, answer.looked, answer.milliseconds) = (most, most, most, most)
      answer.groups = [ExactText(""): other]
      var sum = answer
      for _ in 0..<1100 { sum.merge(answer) }
      #expect([sum.rows, sum.bytes, sum.looked, sum.milliseconds] == [most, most, most, most])
    }
  }

  @Test(
    "a condition compares texts byte by byte, and whole numbers exactly",
    arguments: [
      (.equals("\u{E9}"), #""é""#, true), (.equals("\u{E9}"), #""e\u0301""#, false),
      (.equals("5"), "5.0", true), (.equals("5.0"), "5", true), (.equals("5"), "5e0", true), (.equals("5"), "6", false),
      (.equals("9007199254740993"), "9007199254740992", false), (.equals("5.0"), #""5""#, false),
      (.equals("x"), "5", false), (.equals("null"), "5", false),
      (.contains("a"), #""a\u0301bc""#, true), (.contains("\u{E1}"), #""a\u0301bc""#, false),
      (.range(9_007_199_254_740_993...9_007_199_254_740_993), "9007199254740993", true),
      (.range(9_007_199_254_740_993...9_007_199_254_740_993), "9007199254740992", false),
      (.range(1...2), "1.5", true), (.range(1...2), "2.5", false), (.range(0...Int.max), "1e400", false),
    ] as [(ReportTrigger.Condition, String, Bool)])
  func condition(_ condition: ReportTrigger.Condition, json: String, isMet: Bool) throws {
    #expect(condition.isMet(by: try JSONValue(parsing: json)) == isMet)
  }

  @Test("values that differ in their bytes only are two groups; one of over 64 bytes is among the others")
  func groups() throws {
    var answer = QuestionAnswer()
    for name in ["\u{E9}", "e\u{301}", String(repeating: "x", count: 65), nil] { answer.add(1, to: name) }
    #expect(answer.groups.count == 2 && answer.others.count == 2)
    #expect(try #require(QuestionAnswer(json: try JSONValue(parsing: answer.fitted.text))) == answer)
  }

  @Test("a whole number past 2^53 does not read as an exact one")
  func rounded() {
    #expect(sketch([0x1p53]).json["max"]?.text == "9007199254740992")
    #expect(sketch([1.7644e18]).json["max"]?.text.contains("e+18") == true)
  }

  @Test("percentiles are within the stated error, and all else is exact", arguments: Self.spreads.indices)
  func percentiles(spread: Int) {
    let seed = SeededRandom.announcedSeed("SketchTests")
    var random = SeededRandom(seed: seed)
    let values = (0..<2000).map { _ in Self.spreads[spread].value(&random) }
    let (sorted, sketch) = (values.sorted(), sketch(values))
    #expect(sketch.count == 2000 && sketch.min == sorted[0] && sketch.max == sorted[1999])
    if sorted.allSatisfy({ $0 == $0.rounded() && abs($0) < 1e9 }) { #expect(sketch.sum == values.reduce(0, +)) }
    for share in [0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 1] {
      let truth = sorted[max(Int((share * 2000).rounded(.up)) - 1, 0)]
      let found = sketch.percentile(share) ?? .nan
      #expect(
        abs(found - truth) <= abs(truth) * (sketch.error + 1e-9),
        "\(Self.spreads[spread].name) \(share): \(found), not \(truth) (± \(sketch.error), seed \(seed))")
    }
  }

  @Test("a merge in any order is the sketch of all numbers", arguments: Self.spreads.indices)
  func merged(spread: Int) {
    let seed = SeededRandom.announcedSeed("SketchTests")
    var random = SeededRandom(seed: seed)
    let parts = (0..<9).map { part in (0..<part * 20).map { _ in Self.spreads[spread].value(&random).rounded() } }
    let all = sketch(parts.joined())
    for order in [parts, parts.reversed(), parts.shuffled(using: &random)] {
      let merged = order.reduce(into: Sketch()) { $0.merge(sketch($1)) }
      #expect(Self.exact(merged) == Self.exact(all))
      for share in [0.1, 0.5, 0.95] { #expect(merged.percentile(share) == all.percentile(share)) }
    }
  }

  @Test("a sum beyond all numbers stays a number", arguments: [1.0, -1]) func finite(sign: Double) {
    let sketch = sketch([1.5e308 * sign, 1.5e308 * sign])
    #expect(sketch.sum == .greatestFiniteMagnitude * sign && Sketch(json: sketch.json) == sketch)
    var merged = sketch
    merged.merge(sketch)
    #expect(merged.sum == sketch.sum && merged.count == 4)
  }

  @Test("a sketch is read as it was written, also without numbers", arguments: [0, 1, 500]) func written(count: Int) {
    let sketch = sketch((0..<count).map { Double($0 * $0 - 100) })
    #expect(Sketch(json: sketch.json) == sketch)
    #expect(sketch.json.bytes.count < 4096)
  }

  @Test(
    "a text that no sketch writes is refused",
    arguments: [
      "{}", "[]", #"{"count":1,"sum":1,"min":1,"max":1,"scale":7,"zeros":0}"#,
      #"{"count":2,"sum":1,"min":1,"max":1,"scale":7,"zeros":0,"positive":[0,1]}"#,
      #"{"count":1,"sum":1,"min":1,"max":1,"scale":8,"zeros":0,"positive":[0,1]}"#,
      #"{"count":1,"sum":1,"min":2,"max":1,"scale":7,"zeros":0,"positive":[0,1]}"#,
      #"{"count":-1,"sum":1,"min":1,"max":1,"scale":7,"zeros":0,"positive":[0,-1]}"#,
      #"{"count":1,"sum":1,"min":1,"max":1,"scale":7,"zeros":0,"positive":[9223372036854775807,1]}"#,
      #"{"count":0,"sum":1,"min":1,"max":1,"scale":7,"zeros":0,"positive":[0,9223372036854775807,9223372036854775807,2]}"#,
    ]) func junk(text: String) throws
  { #expect(Sketch(json: try JSONValue(parsing: Array(text.utf8))) == nil) }

  @Test("an answer fits into its record, and counts what it could not name") func fitted() throws {
    var answer = QuestionAnswer()
    for number in 0..<20_000 {
      answer.add(
        Double(number % 977 * number), to: "/a-long-route-of-an-app/with-the-number-\(number % 100)-\(number % 100)")
    }
    #expect(answer.groups.count == QuestionAnswer.groupsMax && answer.others.count > 0)
    let read = try #require(QuestionAnswer(json: answer.fitted))
    #expect(answer.fitted.bytes.count <= QuestionAnswer.bytesMax)
    #expect(read.groups.values.reduce(read.others.count) { $0 + $1.count } == 20_000)
  }

  @Test(
    "arguments that are no question are refused with the reason",
    arguments: [
      ([:], "type must be"), (["type": .text("a b")], "type must be"), (["type": .integer(1)], "type must be a text"),
      (["type": .text("log"), "rows": .text("yes")], "rows must be"),
      (["type": .text("log"), "rows": .truth(true), "of": .text("ms")], "not true with `of`"),
      (["type": .text("log"), "rows": .truth(true), "by": .text("ms")], "no meaning for rows"),
      (["type": .text("log"), "last": .integer(0)], "last must be"),
      (["type": .text("log"), "maxKByte": .integer(1 << 21)], "maxKByte must be"),
      (["type": .text("log"), "field": .text("ms")], "needs one condition"),
      (["type": .text("log"), "equals": .text("ms")], "needs one condition"),
      (["type": .text("log"), "field": .text("a"), "equals": .text("b"), "from": .integer(1)], "needs one condition"),
      (["type": .text("log"), "field": .text("a"), "from": .integer(2), "to": .integer(1)], "from is more"),
      (["type": .text("log"), "regex": .text("a")], "takes no argument regex"),
    ] as [([String: CommandValue], String)])
  func questions(args: [String: CommandValue], words: String) {
    do throws(CommandFault) { Issue.record("\(try Question(args))") } catch {
      #expect(error.message.contains(words), "\(error.message)")
    }
  }
}
