import PrismProtocol
import PrismTestSupport
import Testing

/// Holds the scanner to the tree parser, which was written apart from it.
@Suite("The scanner and the tree parser agree on what JSON is")
struct ScannerFuzzTests {
  @Test("on mutations of sound and unsound texts")
  func agrees() {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("scanner fuzz: seed \(seed)")
    var random = SeededRandom(seed: seed)
    for _ in 0..<60_000 {
      var text = Array(Self.corpus.randomElement(using: &random)!.utf8)
      for _ in 0..<Int.random(in: 0...3, using: &random) { Self.mutate(&text, &random) }
      check(text, seed)
    }
  }

  private static let corpus = [
    #"{"a":1,"b":"x","c":[true,false,null],"d":{"e":{}}}"#, #"{"k\u0041\ud83d\ude00":"\\\"\/\b\f\n\r\t"}"#,
    #"{"n":[0,-0,1.5,-1.5e+30,1E-2,1e999,12345678901234567890]}"#, #"{"größe":"✓ 😀 é ﷽ \u00e9"}"#,
    #"{"long":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","x":"bbbbbbbbé"}"#, #"{ "s" : [ [ ] , { } ] }"#, "{}",
    #"{"deep":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"#,
  ]

  private static func mutate(_ text: inout [UInt8], _ random: inout SeededRandom) {
    let bytes =
      Array("{}[]\",:\\u0123456789abcdefDEtruefalsn -+.\n\t".utf8) + [
        0, 0x1F, 0x7F, 0x80, 0xBF, 0xC0, 0xED, 0xF4, 0xFF,
      ]
    let index = Int.random(in: 0...text.count, using: &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: text.insert(bytes.randomElement(using: &random)!, at: index)
    case 1 where index < text.count: text.remove(at: index)
    case 2 where index < text.count: text[index] = bytes.randomElement(using: &random)!
    default:
      let end = Int.random(in: index...text.count, using: &random)
      text.insert(contentsOf: Array(text[index..<end]), at: index)
    }
  }

  private func check(_ text: [UInt8], _ seed: UInt64) {
    let meta: [UInt8] = Array(#"{"type":"a","meta":{"m":"#.utf8) + text + Array("}}".utf8)
    let expected: JSONValue
    do { expected = try JSONValue(parsing: meta, depthMax: Limits.jsonDepthMax) } catch {
      if error.reason == "a key occurs twice" { return }  // within a meta, that is not the scanner's business
      #expect(throws: Refusal.self, "seed \(seed): \(meta)") { try RequestScannerTests.scan(meta).request.get() }
      return
    }
    guard expected["meta"]?.object?.count == 1, expected.object?.count == 2 else { return }  // grew other fields
    #expect(throws: Never.self, "seed \(seed): \(meta)") { try RequestScannerTests.scan(meta).request.get() }
  }
}
