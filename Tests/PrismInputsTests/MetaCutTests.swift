import PrismAdmission
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs

@Suite struct MetaCutTests {
  @Test("the longest string is cut, the rest stays") func longest() throws {
    let object = Array(#"{"a":"short","b":{"c":["\#(String(repeating: "x", count: 500))"]}}"#.utf8)
    let cut = try JSONCheck.parse(try #require(MetaCut.cut(object, bytesMax: 200)))
    #expect(cut["a"]?.string == "short")
    let kept = try #require(cut["b"]?["c"]?.array?.first?.string)
    #expect(kept.allSatisfy { $0 == "x" })
    #expect(cut["TRUNCATED"]?.int == 500 - kept.count)
  }

  @Test("a meta without long strings keeps as many of its members, or of the elements of its lists")
  func lists() throws {
    let members = (0..<100).map { #""k\#($0)":\#($0)"# }.joined(separator: ",")
    let cut = try JSONCheck.parse(try #require(MetaCut.cut(Array("{\(members)}".utf8), bytesMax: 100)))
    #expect(cut["k0"]?.int == 0 && cut["k99"] == nil && cut["TRUNCATED"]?.int ?? 0 > 500)
    let list = (0..<300).map { _ in #"{"stringValue":"-Dsome.flag=1"}"# }.joined(separator: ",")
    let object = Array(#"{"attributes":[{"key":"args","value":{"arrayValue":{"values":[\#(list)]}}}]}"#.utf8)
    let short = try #require(MetaCut.cut(object, bytesMax: 4094))
    let values = try JSONCheck.parse(short)["attributes"]?.array?.first?["value"]?["arrayValue"]?["values"]?.array
    #expect(short.count <= 4094 && values?.count ?? 0 > 50)
    #expect(MetaCut.cut(Array("[1]".utf8), bytesMax: 100) == nil && MetaCut.cut(Array("{".utf8), bytesMax: 100) == nil)
  }

  @Test("a cut meta fits, is JSON, and is cut no further than needed") func random() throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("PrismInputsTests"))
    for _ in 0..<300 {
      let texts = (0..<Int.random(in: 1...8, using: &random)).map { _ in
        String(
          repeating: ["a", "ä", "\"", "\n", "\u{1}", "😀"].randomElement(using: &random) ?? "a",
          count: Int.random(in: 0...400, using: &random))
      }
      let object = JSONValue.object(texts.enumerated().map { .init("k\($0.offset)", .string($0.element)) }).bytes
      let bytesMax = Int.random(in: 150...2000, using: &random)
      guard object.count - 2 > bytesMax, let cut = MetaCut.cut(object, bytesMax: bytesMax) else { continue }
      let tree = try JSONCheck.parse(cut)
      let kept = texts.indices.map { tree["k\($0)"]?.string }
      // Where the strings would become too short, some go whole.
      #expect(cut.count <= bytesMax && (kept.contains(nil) || cut.count > bytesMax - 110))
      for (text, kept) in zip(texts, kept) {
        #expect(text.unicodeScalars.starts(with: (kept ?? "").unicodeScalars))
      }
    }
  }
}
