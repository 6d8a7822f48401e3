import PrismAdmission
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("A conversation that ends at any byte")
struct ConversationEndTests {
  /// Requests of every form, stored and refused; raw payload bytes follow some.
  private static let requests = [
    #"{"type":"net","meta":{"ms":12}}"# + "\n", #"{"type":"net","meta":{"a":1},"payload":"aGk="}"# + "\n",
    #"{"type":"net","meta":{"a":1},"payload":"!!"}"# + "\n",
    #"{"type":"net","meta":{"a":1},"payload":"\#(String(repeating: "QUFB", count: 400))"}"# + "\n",
    #"{"type":"net","meta":{"p":1},"payloadBytes":5}"# + "\nhello",
    #"{"type":"net","meta":{"p":1},"payloadBytes":0}"# + "\n",
    #"{"type":"none","meta":{"p":1},"payloadBytes":3}"# + "\nabc",
    #"{"type":"net","meta":{"p":1},"payloadBytes":1001}"# + "\n" + String(repeating: "p", count: 1001),
    #"{"namespace":"shop","type":"order","meta":{"x":"é"}}"# + "\n",
    #"{"type":"appCrash","meta":{"APP_NAME":"x"}}"#
      + "\n",
    #"{"hello":{"answer":"cumulative"}}"# + "\n", #"{"hello":{}}"# + "\n", #"{"isGather":"prism"}"# + "\n",
    #"{"watch":{"configuration":true}}"# + "\n",
    #"{"common":true}"# + "\n", "\r\n", "{\n",
  ]

  /// A conversation that has read `bytes` in random pieces, with commits in between.
  private func heard(
    _ bytes: ArraySlice<UInt8>, _ store: inout CommittingStore, _ random: inout SeededRandom
  ) -> IngestConversation {
    var (conversation, rest) = (AdmissionSupport.conversation(), bytes)
    while !rest.isEmpty {
      let size = Int.random(in: 1...400, using: &random)
      conversation.consume(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
      if Int.random(in: 0..<4, using: &random) == 0 { store.commit(&conversation) }
    }
    return conversation
  }

  @Test("nothing is left: no report, no answer, no byte of memory, and every report that was received is answered")
  func everyByte() {
    let seed = SeededRandom.announcedSeed("conversation ends")
    var random = SeededRandom(seed: seed)
    for round in 0..<25 {
      let text = (0..<Int.random(in: 1...4, using: &random)).map { _ in Self.requests.randomElement(using: &random)! }
      let script = Array(text.joined().utf8)
      for end in 0...script.count {
        var store = CommittingStore()
        var conversation = heard(script[..<end], &store, &random)
        store.commit(&conversation)
        let isSilent = conversation.isSettled || conversation.isWithinRequest
        conversation.end(unixMilliseconds: AdmissionSupport.now)
        store.commit(&conversation)
        let tally = conversation.takeTally()
        let isLeft = !conversation.isSettled || conversation.partialBytes + conversation.batchBytes > 0
        let isAnswered = tally.received == tally.stored + tally.refused.values.reduce(0, +)
        guard isSilent, !isLeft, isAnswered else {
          Issue.record("seed \(seed), round \(round), byte \(end): \(String(decoding: script[..<end], as: UTF8.self))")
          return
        }
      }
    }
  }

  @Test(
    "a refused payload as the last request leaves nothing behind",
    arguments: [#""payload":"!!""#, #""payload":"\#(String(repeating: "QUFB", count: 400))""#])
  func refusedLast(payload: String) {
    var conversation = AdmissionSupport.conversation()
    conversation.consume(#"{"type":"net","meta":{"a":1},\#(payload)}"# + "\n")
    #expect(conversation.answers().map { $0["status"] } == ["refused"])
    #expect(conversation.isSettled && conversation.batchBytes == 0)
  }
}
