import PrismConfig
import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("What an answer means")
struct AnswerClassTests {
  static let packet = PacketID("018bcfe5-6800-7000-8000-000000000001")!
  static let other = "018bcfe5-6800-7000-8000-000000000002"

  private func classify(
    _ status: Int, _ headers: [String: String] = [:], body: String = "", receiptIsOptional: Bool = false,
    origin: UploadAnswer.Origin = .newConnection
  ) -> AnswerClass {
    var answer = UploadAnswer(
      outcome: .response(status: status, headers: headers, body: Array(body.utf8)), mayHaveLeft: true, bytesSent: 1,
      bytesReceived: 1, duration: .zero)
    answer.origin = origin
    return AnswerClass(answer, to: Self.packet, receipt: receiptIsOptional ? .optional : .required, now: 0)
  }

  @Test("a 2xx with this packet's receipt, and no other, is acceptance", arguments: [200, 201, 202, 204, 299])
  func receipts(status: Int) {
    let id = Self.packet.description
    #expect(classify(status, ["prism-receipt": id]) == .accepted(wasDuplicate: false))
    #expect(classify(status, ["prism-receipt": " \(id.uppercased())\t"]) == .accepted(wasDuplicate: false))
    for receipt in [Self.other, "", "yes", "\(id), \(id)", "{\(id)}"] {
      #expect(classify(status, ["prism-receipt": receipt]) == .noReceipt(status: status), "\(receipt)")
    }
    #expect(classify(status) == .noReceipt(status: status))
    #expect(classify(status, receiptIsOptional: true) == .accepted(wasDuplicate: false))
    let wrong = classify(status, ["prism-receipt": Self.other], receiptIsOptional: true)
    #expect(wrong == .noReceipt(status: status), "another packet's receipt is none, even where none is asked for")
  }

  @Test(
    "only a body that is a JSON object with `duplicate` makes a duplicate",
    arguments: [
      (#"{"duplicate":true}"#, true), (#"{"duplicate":false}"#, false), (#"{"duplicate":"true"}"#, false),
      (#"[{"duplicate":true}]"#, false), ("<html>duplicate</html>", false), ("", false), (#"{"duplicate":tru"#, false),
    ])
  func duplicates(body: String, isDuplicate: Bool) {
    let answer = classify(200, ["prism-receipt": Self.packet.description], body: body)
    #expect(answer == .accepted(wasDuplicate: isDuplicate))
  }

  enum Kind: Equatable { case tooLarge, unacceptable, misconfigured, unavailable, noReceipt }

  static let kinds: [(ClosedRange<Int>, Kind)] = [
    (0...199, .unavailable), (200...299, .noReceipt), (300...399, .misconfigured), (400...400, .unacceptable),
    (401...407, .misconfigured), (408...408, .unavailable), (409...412, .misconfigured), (413...413, .tooLarge),
    (414...414, .misconfigured), (415...415, .unacceptable), (416...421, .misconfigured), (422...422, .unacceptable),
    (423...424, .misconfigured), (425...425, .unavailable), (426...428, .misconfigured), (429...429, .unavailable),
    (430...499, .misconfigured), (500...999, .unavailable),
  ]

  @Test("every status from 0 to 999 has its meaning", arguments: kinds)
  func statuses(range: ClosedRange<Int>, kind: Kind) {
    for status in range {
      let got: Kind? =
        switch classify(status) {
        case .tooLarge: .tooLarge
        case .unacceptable(status, _): .unacceptable
        case .misconfigured(status, nil, _): .misconfigured
        case .unavailable(status, _, nil): .unavailable
        case .noReceipt(status): .noReceipt
        default: nil
        }
      #expect(got == kind, "\(status)")
    }
  }

  @Test("the collector's message comes along, cut between characters at 512 bytes")
  func messages() {
    let long = String(repeating: "é", count: 300)
    #expect(classify(422, body: #"{"message":"no"}"#) == .unacceptable(status: 422, message: "no"))
    let cut = AnswerClass.unacceptable(status: 422, message: String(repeating: "é", count: 256))
    #expect(classify(422, body: #"{"message":"\#(long)"}"#) == cut)
    #expect(
      classify(503, body: #"{"message":"no"}"#) == .unavailable(status: 503, cause: "status 503: no", retryAfter: nil))
    #expect(classify(413, body: "no JSON") == .tooLarge(message: ""))
  }

  @Test("Retry-After counts where trying again makes sense, nowhere else", arguments: [408, 425, 429, 500, 503, 599])
  func retryAfter(status: Int) {
    let answer = classify(status, ["retry-after": "7"])
    #expect(answer == .unavailable(status: status, cause: "status \(status)", retryAfter: .seconds(7)))
    #expect(classify(401, ["retry-after": "7"]) == .misconfigured(status: 401, code: nil, message: ""))
  }

  @Test("a refusal on a kept connection is believed where it names the packet", arguments: [400, 413, 415, 422])
  func refusalOnKeptConnection(status: Int) {
    let named = #"{"message":"no","packetId":"\#(Self.packet)"}"#
    for origin in UploadAnswer.Origin.allCases {
      let believed = classify(status, body: named)
      #expect(classify(status, body: named, origin: origin) == believed)
      for body in ["", "<html>", #"{"message":"no","packetId":"\#(Self.other)"}"#] {
        let expected = origin == .newConnection ? classify(status, body: body) : .unproven(status: status)
        #expect(classify(status, body: body, origin: origin) == expected, "\(origin) \(body)")
      }
      #expect(believed != .unproven(status: status))
    }
  }

  @Test("where receipts are optional, a 2xx that began before the request's end proves nothing")
  func earlySuccess() {
    #expect(classify(200, receiptIsOptional: true, origin: .beforeRequestEnd) == .unproven(status: 200))
    #expect(classify(200, receiptIsOptional: true, origin: .keptConnection) == .accepted(wasDuplicate: false))
    let receipt = ["prism-receipt": Self.packet.description]
    for isOptional in [false, true] {
      let answer = classify(200, receipt, receiptIsOptional: isOptional, origin: .beforeRequestEnd)
      #expect(answer == .accepted(wasDuplicate: false))
    }
  }

  @Test(
    "a code of keys or headers is a fault of configuration, whatever the connection", arguments: PacketRefusal.allCases)
  func codes(code: PacketRefusal) {
    for status in [400, 415, 422] {
      let answer = classify(status, body: #"{"code":"\#(code.rawValue)","message":"m"}"#)
      let expected: AnswerClass =
        code.isOfConfiguration
        ? .misconfigured(status: status, code: code, message: "m") : .unacceptable(status: status, message: "m")
      #expect(answer == expected)
    }
    #expect(PacketRefusal.allCases.count { $0.isOfConfiguration } == 8)
  }

  @Test("what brought no answer is tried again, but for a stop", arguments: UploadAnswer.Failure.allCases)
  func failures(failure: UploadAnswer.Failure) {
    let answer = UploadAnswer(
      outcome: .failure(failure, detail: "why"), mayHaveLeft: true, bytesSent: 0, bytesReceived: 0, duration: .zero)
    let expected: AnswerClass =
      failure == .cancelled
      ? .cancelled : .unavailable(status: nil, cause: "\(failure.rawValue): why", retryAfter: nil)
    #expect(AnswerClass(answer, to: Self.packet, receipt: .optional, now: 0) == expected)
  }
}
