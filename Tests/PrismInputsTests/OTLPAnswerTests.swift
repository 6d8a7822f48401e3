import PrismProtocol
import Testing

@testable import PrismInputs

@Suite struct OTLPAnswerTests {
  private static let awaitedType = Refusal(.unknownType, "the type is not in the list yet", retryMilliseconds: 2000)
  private static let unknownType = Refusal(.unknownType, "the type is not in the monitorList of otel")
  private static let tooLarge = Refusal(.metaTooLarge, "the merged meta has 20000 bytes")

  @Test(
    "the answers to the records decide the status",
    arguments: [
      (5, [], 200, nil), (5, [(unknownType, 2)], 200, nil), (0, [(unknownType, 2)], 400, nil),
      (0, [(awaitedType, 2)], 503, 2),
      (0, [(Refusal(.forbidden, "no"), 1)], 403, nil), (0, [(tooLarge, 1)], 400, nil),
      (3, [(Refusal(.storeFull, "full"), 1)], 429, 5),
      (3, [(unknownType, 1), (Refusal(.diskFull, "full"), 1)], 503, 5),
      (0, [(Refusal(.storeFull, "full"), 1), (Refusal(.busy, "later", retryMilliseconds: 1500), 1)], 503, 2),
    ] as [(Int, [(Refusal, Int)], Int, Int?)])
  func status(taken: Int, refused: [(Refusal, Int)], status: Int, retrySeconds: Int?) {
    for encoding in OTLPEncoding.allCases {
      let outcome = OTLPOutcome(signal: .logs, taken: taken, refused: refused.map { (refusal: $0.0, count: $0.1) })
      let answer = outcome.answer(encoding)
      #expect(answer.status == status)
      #expect(answer.retrySeconds == retrySeconds)
      #expect(answer.contentType == encoding.rawValue)
    }
  }

  @Test(
    "a partial success says how many and why, each reason once",
    arguments: [
      (OTLPSignal.logs, "rejectedLogRecords"), (.traces, "rejectedSpans"), (.metrics, "rejectedDataPoints"),
    ]) func partial(signal: OTLPSignal, name: String) throws
  {
    let refused = [Self.unknownType, Self.unknownType, Self.tooLarge].map { (refusal: $0, count: 2) }
    let answer = OTLPOutcome(signal: signal, taken: 1, refused: refused).answer(.json)
    let partial = try JSONValue(parsing: answer.body)["partialSuccess"]
    #expect(partial?[name]?.string == "6")
    #expect(
      partial?["errorMessage"]?.string
        == "4: the type is not in the monitorList of otel; 2: the merged meta has 20000 bytes")
  }

  @Test("protobuf answers are what an SDK reads") func protobuf() {
    let refused = OTLPOutcome(signal: .traces, taken: 1, refused: [(Refusal(.badRequest, "no"), 300)])
    let partial = refused.answer(.protobuf)
    #expect(partial.body == [0x0A, 12, 0x08, 0xAC, 0x02, 0x12, 7] + Array("300: no".utf8))
    #expect(OTLPOutcome(signal: .logs, taken: 1).answer(.protobuf).body.isEmpty)
    #expect(OTLPEncoding.protobuf.answer(OTLPFault(400, "bad")).body == [0x08, 3, 0x12, 3] + Array("bad".utf8))
    #expect(OTLPEncoding.json.answer(OTLPFault(400, "bad")).body == Array(#"{"code":3,"message":"bad"}"#.utf8))
  }

  @Test(
    "the content type decides the encoding, its parameters do not",
    arguments: [
      ("application/json; charset=utf-8", OTLPEncoding.json), ("Application/X-Protobuf", .protobuf),
      ("text/plain", nil),
    ] as [(String, OTLPEncoding?)]) func encoding(type: String, expected: OTLPEncoding?)
  {
    #expect(OTLPEncoding(contentType: type) == expected)
  }
}
