import PrismAdmission
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("Any bytes, cut at any point")
struct ConversationFuzzTests {
  private static let requests = [
    #"{"type":"net","meta":{"ms":12}}"#, #"{"type":"net","meta":{"ms":12,"ms":13,"SYS_BRAND":1},"reportId":"a"}"#,
    #"{"namespace":"shop","type":"order","meta":{"x":"é"}}"#, #"{"type":"net","meta":{"a":1},"payload":"aGk="}"#,
    #"{"type":"appCrash","meta":{"APP_NAME":"x"}}"#, #"{"hello":{"answer":"cumulative"}}"#, #"{"hello":{}}"#,
    #"{"isGather":"prism"}"#, #"{"common":true}"#,
    #"{"watch":{"configuration":true}}"#, "", "{", #"{"type":"none","meta":{}}"#, #"{"type":"net","meta":{}}"#,
  ]

  private static func script(_ random: inout SeededRandom) -> [UInt8] {
    var script: [UInt8] = []
    for _ in 0..<Int.random(in: 1...12, using: &random) {
      var line = Array(requests.randomElement(using: &random)!.utf8)
      if Int.random(in: 0..<6, using: &random) == 0, !line.isEmpty {
        line[Int.random(in: 0..<line.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      script += line + [0x0A]
      if Int.random(in: 0..<4, using: &random) == 0 {
        let bytes = Int.random(in: 0...1100, using: &random)
        script += Array(#"{"type":"net","meta":{"p":1},"payloadBytes":\#(bytes)}"#.utf8) + [0x0A]
        script += (0..<bytes).map { _ in UInt8.random(in: 0...255, using: &random) }
      }
    }
    if Int.random(in: 0..<4, using: &random) == 0 { script.removeLast(min(script.count, 7)) }
    return script
  }

  /// All answers, with commits in between; cumulative lines depend on where those fall, so their sums are kept.
  private func talk(_ script: [UInt8], _ random: inout SeededRandom, isCut: Bool) -> (lines: [JSONValue], rows: Int) {
    var (conversation, store) = (AdmissionSupport.conversation(), CommittingStore())
    var rest = script[...]
    while !rest.isEmpty {
      let size = isCut ? Int.random(in: 1...200, using: &random) : rest.count
      conversation.consume(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
      if isCut && Bool.random(using: &random) { store.commit(&conversation) }
    }
    conversation.end(unixMilliseconds: AdmissionSupport.now)
    store.commit(&conversation)
    #expect(conversation.isSettled)
    #expect(conversation.batchBytes == 0 && conversation.partialBytes == 0)
    let answers = conversation.answers()
    let refused = answers.flatMap { $0["refused"]?.array ?? [] }
    let acked = answers.compactMap { $0["acked"]?.int }.last
    let lines = answers.filter { $0["acked"] == nil } + refused + (acked.map { [.int($0)] } ?? [])
    return (lines, store.batches.reduce(0) { $0 + $1.rows.count })
  }

  @Test("the same is stored and answered, and nothing is left behind")
  func anyCutting() {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("conversation fuzz: seed \(seed)")
    var random = SeededRandom(seed: seed)
    for round in 0..<1500 {
      let script = Self.script(&random)
      let whole = talk(script, &random, isCut: false)
      let cut = talk(script, &random, isCut: true)
      #expect(whole.lines == cut.lines, "seed \(seed), round \(round)")
      #expect(whole.rows == cut.rows, "seed \(seed), round \(round)")
    }
  }
}
