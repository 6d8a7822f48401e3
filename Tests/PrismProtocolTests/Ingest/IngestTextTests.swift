import PrismBase
import PrismProtocol
import Testing

@Suite("Texts of the ingest protocol")
struct IngestTextTests {
  @Test("answers are written as the protocol says")
  func answers() {
    var text: [UInt8] = []
    AnswerText.appendStored(isDuplicate: false, isPayloadLeftOut: false, to: &text) { $0 += Array("r-1".utf8) }
    AnswerText.appendStored(isDuplicate: true, isPayloadLeftOut: true, to: &text) { $0 += Array("r-1".utf8) }
    text += AnswerText.refused(Refusal(.unknownType, "no \"x\""))
    text += AnswerText.refused(Refusal(.busy, "later", retryMilliseconds: 1000))
    AnswerText.appendAcked(3, refused: [], to: &text)
    AnswerText.appendAcked(5, refused: [(4, Refusal(.storeFull, "a")), (5, Refusal(.busy, "b"))], to: &text)
    AnswerText.appendAcked(9, refused: [], sampledOut: 2, to: &text)
    text += AnswerText.hello(version: "1.2", payloadBytesMax: 7) + AnswerText.isGather(true)
    text += AnswerText.common(Array(#""A":"b""#.utf8))
    let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map { String($0) }
    #expect(
      lines == [
        #"{"status":"stored","reportId":"r-1"}"#,
        #"{"status":"stored","reportId":"r-1","duplicate":true,"payloadLeftOut":true}"#,
        #"{"status":"refused","code":"unknown_type","message":"no \"x\""}"#,
        #"{"status":"refused","code":"busy","message":"later","retryMs":1000}"#, #"{"acked":3}"#,
        #"{"acked":5,"refused":[{"seq":4,"code":"store_full","message":"a"},{"seq":5,"code":"busy","message":"b"}]}"#,
        #"{"acked":9,"sampled":2}"#,
        #"{"hello":{"server":"prismd","version":"1.2","limits":{"metaByte":10240,"payloadByte":7}}}"#,
        #"{"isGather":true}"#, #"{"common":{"A":"b"}}"#,
      ])
  }

  @Test("a report id is the same as bytes and as text", arguments: [0, 35, 36, 1 << 49 | 12_345, Int64.max] as [Int64])
  func reportIDs(value: Int64) {
    var bytes: [UInt8] = []
    let epoch = "abcdefghij0123456789"
    RowID(value: value).appendReportID(epoch: Array(epoch.utf8), to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == RowID(value: value).reportID(epoch: epoch))
  }

  @Test(
    "base64 in a line is decoded, or refused with nothing appended",
    arguments: [
      ("", ""), ("aGk=", "hi"), ("aA==", "h"), ("aGhp", "hhi"), ("aGhpaGhp", "hhihhi"), ("aGk", nil), ("aGl=", nil),
      ("aB==", nil), ("a===", nil), ("====", nil), ("aG=k", nil), ("aGk=aGk=", nil), ("aG k", nil), ("aG\u{7F}k", nil),
    ] as [(String, String?)])
  func base64(text: String, expected: String?) {
    var result: [UInt8] = [1, 2]
    let bytes = Array("[\(text)]".utf8)
    let isDecoded = Base64.decode(bytes.span, 1..<bytes.count - 1, appendingTo: &result)
    #expect(isDecoded == (expected != nil))
    #expect(result == [1, 2] + Array((expected ?? "").utf8))
    #expect(Base64.decode(Array(text.utf8)) == expected.map { Array($0.utf8) })
  }
}
