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

  @Test("a meta without long strings is not cut") func nothingToCut() {
    let members = (0..<100).map { #""k\#($0)":\#($0)"# }.joined(separator: ",")
    #expect(MetaCut.cut(Array("{\(members)}".utf8), bytesMax: 100) == nil)
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
      #expect(cut.count <= bytesMax && cut.count > bytesMax - 110)
      let tree = try JSONCheck.parse(cut)
      for (index, text) in texts.enumerated() {
        #expect(text.unicodeScalars.starts(with: (tree["k\(index)"]?.string ?? "missing").unicodeScalars))
      }
    }
  }
}
