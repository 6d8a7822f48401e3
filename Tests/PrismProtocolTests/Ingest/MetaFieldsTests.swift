import Glibc
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("What a receiver reads of a meta")
struct MetaFieldsTests {
  private static func fields(_ text: [UInt8]) -> (type: String?, reportID: String?, createdTime: Int64?)? {
    guard let fields = try? MetaFields(text.span) else { return nil }
    return (fields.type?.string(in: text.span), fields.reportID?.string(in: text.span), fields.createdTime)
  }

  @Test(
    "the three keys are found in any place, and nothing else is taken for them",
    arguments: [
      (#"{"MONITOR_TYPE":"net","REPORT_ID":"r","CREATE_TIME":12}"#, "net", "r", 12),
      (#" { "CREATE_TIME" : -9223372036854775808 , "MONITOR_TYPE" : "größe" } "#, "größe", nil, .min),
      (#"{"MONITOR\u005fTYPE":"a\nb","REPORT_ID":""}"#, "a\nb", "", nil),
      (#"{"MONITOR_TYPE":"one","MONITOR_TYPE":"two","CREATE_TIME":1,"CREATE_TIME":2}"#, "two", nil, 2),
      (#"{"MONITOR_TYPE":7,"REPORT_ID":null,"CREATE_TIME":"12"}"#, nil, nil, nil),
      (#"{"CREATE_TIME":1.5,"in":{"MONITOR_TYPE":"no"}}"#, nil, nil, nil),
      (#"{"CREATE_TIME":9223372036854775808}"#, nil, nil, nil), (#"{"CREATE_TIME":1e3}"#, nil, nil, nil),
      ("{}", nil, nil, nil),
    ] as [(String, String?, String?, Int64?)])
  func reads(text: String, type: String?, reportID: String?, createdTime: Int64?) throws {
    let fields = try #require(Self.fields(Array(text.utf8)))
    #expect(fields == (type, reportID, createdTime))
  }

  @Test(
    "what is not exactly one object is refused",
    arguments: [
      "", " ", "[1]", "1", "{", "{}{}", "{} x", #"{"a":1,}"#, #"{"a"}"#, #"{"a":01}"#, "{\"a\":\"\u{1}\"}", #"{a:1}"#,
      String(repeating: #"{"a":"#, count: 65) + "1" + String(repeating: "}", count: 65),
    ])
  func refuses(text: String) { #expect(Self.fields(Array(text.utf8)) == nil) }

  @Test("bytes that are not UTF-8 are refused")
  func encoding() { #expect(Self.fields([0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D]) == nil) }

  @Test("it takes what a parser takes, and reads the same of it, after any change of a sound meta")
  func agreesWithTrees() {
    let seed = getenv("PRISM_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: 0...UInt64.max)
    print("metas against trees: seed \(seed) (replay with PRISM_SEED=\(seed))")
    var random = SeededRandom(seed: seed)
    let sound =
      #"{"MONITOR_TYPE":"n\u0065t","a":[1,{"b":null}],"REPORT_ID":"id-1","CREATE_TIME":1700000000000,"t":"ü"}"#
    var taken = 0
    for _ in 0..<20_000 {
      var text = Array(sound.utf8)
      for _ in 0..<Int.random(in: 0...2, using: &random) { Self.change(&text, &random) }
      let tree = (try? JSONValue(parsing: text, allowsDuplicateKeys: true)).flatMap { $0.object == nil ? nil : $0 }
      let fields = Self.fields(text)
      #expect((tree == nil) == (fields == nil), "\(String(decoding: text, as: UTF8.self))")
      guard let tree, let fields else { continue }
      taken += 1
      #expect(tree["MONITOR_TYPE"]?.string == fields.type)
      #expect(tree["REPORT_ID"]?.string == fields.reportID)
      #expect(
        tree["CREATE_TIME"]?.int.map { Int64($0) } == fields.createdTime, "\(String(decoding: text, as: UTF8.self))")
    }
    #expect(taken > 5000)
  }

  private static func change(_ text: inout [UInt8], _ random: inout SeededRandom) {
    let index = Int.random(in: 0..<text.count, using: &random)
    switch Int.random(in: 0..<3, using: &random) {
    case 0: text.remove(at: index)
    case 1: text[index] = UInt8.random(in: 0x20...0x7E, using: &random)
    default: text.insert(text[Int.random(in: 0..<text.count, using: &random)], at: index)
    }
  }
}
