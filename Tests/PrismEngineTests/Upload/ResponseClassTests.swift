import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("What an answer means")
struct ResponseClassTests {
  static let packet = PacketID("018bcfe5-6800-7000-8000-000000000001")!
  static let other = "018bcfe5-6800-7000-8000-000000000002"

  static func check(_ requirement: NamespaceConfiguration.Receipt, of packet: PacketID = packet) -> ReceiptCheck {
    ReceiptCheck(headers(packet), key: DeliveryRig.key, requirement: requirement)
  }

  private static func headers(_ packet: PacketID = packet, sentTime: Int64 = 1) -> PacketHeaders {
    PacketHeaders(
      deviceID: "d", namespace: .prism, packetID: packet, kind: .meta, itemCount: 1, sentTime: sentTime,
      format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .gzip))
  }

  /// The receipt of the packet for an answer with this body.
  private func receipt(
    _ body: String = "", key: Secret = DeliveryRig.key, sentTime: Int64 = 1
  ) throws -> [String: String] {
    let text = try PacketReceipt(key: key).text(for: Self.headers(sentTime: sentTime), answer: Array(body.utf8))
    return ["prism-receipt": text]
  }

  /// The proof that the collector refused the packet with an answer of this body.
  static func verdict(
    _ status: Int, _ body: String = "", key: Secret = DeliveryRig.key, sentTime: Int64 = 1
  ) throws -> [String: String] {
    let proof = try PacketReceipt(key: key, refusal: status)
    return ["prism-verdict": try proof.text(for: headers(sentTime: sentTime), answer: Array(body.utf8))]
  }

  private func classify(
    _ status: Int, _ headers: [String: String] = [:], body: String = "", receiptIsOptional: Bool = false,
    origin: PostAnswer.Origin = .newConnection
  ) -> DeliveryOutcome.Verdict {
    var answer = PostAnswer(
      outcome: .response(status: status, headers: headers, body: Array(body.utf8)), mayHaveLeft: true, bytesSent: 1,
      bytesReceived: 1, duration: .zero)
    answer.origin = origin
    return ResponseClass.verdict(answer, to: Self.check(receiptIsOptional ? .optional : .required), now: 0)
  }

  @Test("a 2xx with this packet's receipt, and no other, is acceptance", arguments: [200, 201, 202, 204, 299])
  func receipts(status: Int) throws {
    let id = Self.packet.description
    #expect(classify(status, try receipt()) == .accepted(wasDuplicate: false))
    for receipt in [Self.other, "", "yes", "\(id), \(id)", "{\(id)}"] {
      #expect(classify(status, ["prism-receipt": receipt]) == .noReceipt(status: status), "\(receipt)")
    }
    #expect(classify(status) == .noReceipt(status: status))
    #expect(classify(status, receiptIsOptional: true) == .accepted(wasDuplicate: false))
    #expect(classify(status, ["prism-receipt": id], receiptIsOptional: true) == .accepted(wasDuplicate: false))
  }

  @Test(
    "where receipts are optional, a foreign collector may have its own; one of another packet needs a new connection",
    arguments: [PostAnswer.Origin.newConnection, .keptConnection, .beforeRequestEnd])
  func ownReceipts(origin: PostAnswer.Origin) throws {
    let isWhole = origin != .beforeRequestEnd
    let accepted = DeliveryOutcome.Verdict.accepted(wasDuplicate: false)
    for receipt in ["", "yes", "17 \(Self.packet)", "{\(Self.packet)}", "\(Self.packet) a b"] {
      let answer = classify(202, ["prism-receipt": receipt], receiptIsOptional: true, origin: origin)
      #expect(answer == (isWhole ? accepted : .unproven(status: 202)), "\(receipt)")
      #expect(classify(202, ["prism-receipt": receipt], origin: origin) == .noReceipt(status: 202), "\(receipt)")
    }
    for receipt in [Self.other, "\(Self.other) ab"] {
      let answer = classify(202, ["prism-receipt": receipt], receiptIsOptional: true, origin: origin)
      #expect(answer == (origin == .newConnection ? accepted : .unproven(status: 202)), "\(receipt)")
    }
  }

  @Test("a receipt without the key, of another attempt, or for another answer is not valid")
  func forgedReceipts() throws {
    let foreign = Secret([UInt8](repeating: 9, count: 16))
    for headers in [
      ["prism-receipt": Self.packet.description], try receipt(key: foreign), try receipt(sentTime: 2),
      try receipt(#"{"duplicate":false}"#), ["prism-receipt": "\(Self.packet) \(String(repeating: "0", count: 64))"],
    ] { #expect(classify(200, headers) == .noReceipt(status: 200), "\(headers)") }
  }

  @Test(
    "only a body that is a JSON object with `duplicate` makes a duplicate",
    arguments: [
      (#"{"duplicate":true}"#, true), (#"{"duplicate":false}"#, false), (#"{"duplicate":"true"}"#, false),
      (#"[{"duplicate":true}]"#, false), ("<html>duplicate</html>", false), ("", false), (#"{"duplicate":tru"#, false),
    ])
  func duplicates(body: String, isDuplicate: Bool) throws {
    let answer = classify(200, try receipt(body), body: body)
    #expect(answer == .accepted(wasDuplicate: isDuplicate))
  }

  enum Kind: Equatable { case tooLarge, tooOld, unacceptable, misconfigured, unavailable, noReceipt }

  static let kinds: [(ClosedRange<Int>, Kind)] = [
    (0...199, .unavailable), (200...299, .noReceipt), (300...399, .misconfigured), (400...400, .unacceptable),
    (401...407, .misconfigured), (408...408, .unavailable), (409...409, .misconfigured), (410...410, .tooOld),
    (411...412, .misconfigured), (413...413, .tooLarge),
    (414...414, .misconfigured), (415...415, .unacceptable), (416...421, .misconfigured), (422...422, .unacceptable),
    (423...424, .misconfigured), (425...425, .unavailable), (426...428, .misconfigured), (429...429, .unavailable),
    (430...499, .misconfigured), (500...999, .unavailable),
  ]

  static let finalStatuses = [400, 410, 413, 415, 422]

  /// Headers and bodies that prove nothing. - Parameter status: of the answer that carries them.
  static func forgeries(_ status: Int) throws -> [(headers: [String: String], body: String)] {
    let foreignKey = Secret([UInt8](repeating: 9, count: 16))
    let zeros = String(repeating: "0", count: 64)
    let receipt = try PacketReceipt(key: DeliveryRig.key).text(for: headers(), answer: [])
    return [
      ([:], ""), ([:], "<html>no</html>"), ([:], #"{"message":"no","packetId":"\#(other)"}"#),
      ([:], #"{"message":"no","packetId":"\#(packet)"}"#), ([:], #"{"code":"metaSyntax","packetId":"\#(packet)"}"#),
      (["prism-verdict": packet.description], ""), (["prism-verdict": "\(packet) \(zeros)"], ""),
      (["prism-verdict": "\(other) \(zeros)"], ""), (try verdict(status, key: foreignKey), ""),
      (try verdict(status, sentTime: 2), ""), (try verdict(status == 599 ? 400 : status + 1), ""),
      (try verdict(status, "no"), ""), (["prism-verdict": receipt], ""),
      (["prism-verdict": receipt, "prism-receipt": receipt], ""),
    ]
  }

  @Test("no answer without the collector's proof makes a dead letter, of any status", arguments: 200...599)
  func unproven(status: Int) throws {
    for (headers, body) in try Self.forgeries(status) {
      for origin in PostAnswer.Origin.allCases {
        let verdict = classify(status, headers, body: body, origin: origin)
        for itemCount in [1, 100] {
          let attempt = DeliveryDecision.Attempt(packet: Self.packet, itemCount: itemCount, attempts: 3, now: 0)
          switch DeliveryDecision(verdict, attempt, newID: { PacketID(Self.other)! }) {
          case .settled(let disposition):
            if case Disposition.dead = disposition { Issue.record("\(status) \(headers) \(body)") }
            #expect(status < 300 && headers["prism-receipt"] != nil)
          case .split: #expect(status == 413 && itemCount > 1)
          case .again(let reason, let problem, _):
            #expect(!Self.finalStatuses.contains(status) || reason == .held && problem.status == status)
          case .confirm: #expect(Self.finalStatuses.contains(status) && origin != .newConnection)
          case let decision: Issue.record("\(status) \(headers) \(body): \(decision)")
          }
        }
      }
    }
  }

  @Test("a namespace that trusts refusals needs no proof", arguments: finalStatuses)
  func trusted(status: Int) throws {
    let check = ReceiptCheck(Self.headers(), key: DeliveryRig.key, requirement: .required, trustsRefusals: true)
    let answer = PostAnswer(
      outcome: .response(status: status, headers: [:], body: []), mayHaveLeft: true, bytesSent: 1, bytesReceived: 1,
      duration: .zero)
    #expect(ResponseClass.verdict(answer, to: check, now: 0) == classify(status, try Self.verdict(status)))
  }

  @Test("a collector that does not speak the version of the packet holds the namespace")
  func otherVersion() {
    #expect(
      classify(503, body: #"{"code":"version","message":"m"}"#)
        == .misconfigured(status: 503, code: .version, message: "m"))
  }

  @Test("every status from 0 to 999 has its meaning", arguments: kinds)
  func statuses(range: ClosedRange<Int>, kind: Kind) throws {
    for status in range {
      let got: Kind? =
        switch classify(status, try Self.verdict(status)) {
        case .tooLarge(status, _): .tooLarge
        case .tooOld: .tooOld
        case .unacceptable(status, _): .unacceptable
        case .misconfigured(status, nil, _): .misconfigured
        case .unavailable(status, _, nil): .unavailable
        case .noReceipt(status): .noReceipt
        default: nil
        }
      #expect(got == kind, "\(status)")
    }
  }

  @Test("the collector's message is kept, cut between characters at 512 bytes")
  func messages() throws {
    let long = String(repeating: "é", count: 300)
    func refused(_ status: Int, _ body: String) throws -> DeliveryOutcome.Verdict {
      classify(status, try Self.verdict(status, body), body: body)
    }
    #expect(try refused(422, #"{"message":"no"}"#) == .unacceptable(status: 422, message: "no"))
    #expect(classify(422, body: #"{"message":"no"}"#) == .unprovenRefusal(status: 422, message: "no"))
    let cut = DeliveryOutcome.Verdict.unacceptable(status: 422, message: String(repeating: "é", count: 256))
    #expect(try refused(422, #"{"message":"\#(long)"}"#) == cut)
    #expect(
      classify(503, body: #"{"message":"no"}"#) == .unavailable(status: 503, cause: "status 503: no", retryAfter: nil))
    #expect(try refused(413, "no JSON") == .tooLarge(status: 413, message: ""))
  }

  @Test("Retry-After counts where trying again makes sense, nowhere else", arguments: [408, 425, 429, 500, 503, 599])
  func retryAfter(status: Int) {
    let answer = classify(status, ["retry-after": "7"])
    #expect(answer == .unavailable(status: status, cause: "status \(status)", retryAfter: .seconds(7)))
    #expect(classify(401, ["retry-after": "7"]) == .misconfigured(status: 401, code: nil, message: ""))
  }

  @Test("a refusal on a kept connection is the packet's if it names it", arguments: [400, 413, 415, 422])
  func refusalOnKeptConnection(status: Int) throws {
    let named = #"{"message":"no","packetId":"\#(Self.packet)"}"#
    for origin in PostAnswer.Origin.allCases {
      let believed = DeliveryOutcome.Verdict.unprovenRefusal(status: status, message: "no")
      let proof = try Self.verdict(status, named)
      #expect(classify(status, proof, body: named, origin: origin) == classify(status, proof, body: named))
      #expect(classify(status, body: named, origin: origin) == believed)
      for body in ["", "<html>", #"{"message":"no","packetId":"\#(Self.other)"}"#] {
        let expected = origin == .newConnection ? classify(status, body: body) : .unproven(status: status)
        #expect(classify(status, body: body, origin: origin) == expected, "\(origin) \(body)")
      }
    }
  }

  @Test("where receipts are optional, a 2xx that began before the request's end proves nothing")
  func earlySuccess() throws {
    #expect(classify(200, receiptIsOptional: true, origin: .beforeRequestEnd) == .unproven(status: 200))
    #expect(classify(200, receiptIsOptional: true, origin: .keptConnection) == .accepted(wasDuplicate: false))
    let receipt = try receipt()
    for isOptional in [false, true] {
      let answer = classify(200, receipt, receiptIsOptional: isOptional, origin: .beforeRequestEnd)
      #expect(answer == .accepted(wasDuplicate: false))
    }
  }

  @Test(
    "a code of keys or headers is a fault of configuration, over any connection", arguments: PacketRefusal.allCases)
  func codes(code: PacketRefusal) throws {
    for status in [400, 415, 422] {
      let body = #"{"code":"\#(code.rawValue)","message":"m"}"#
      let answer = classify(status, try Self.verdict(status, body), body: body)
      if code.isOfConfiguration { #expect(classify(status, body: body) == answer) }
      if status == 415, code == .unknownDictionary {
        #expect(answer == .unknownDictionary)
        continue
      }
      let expected: DeliveryOutcome.Verdict =
        code.isOfConfiguration
        ? .misconfigured(status: status, code: code, message: "m") : .unacceptable(status: status, message: "m")
      #expect(answer == expected)
    }
    #expect(PacketRefusal.allCases.count { $0.isOfConfiguration } == 9)
  }

  @Test("what brought no answer is tried again, but for a stop", arguments: PostAnswer.Failure.allCases)
  func failures(failure: PostAnswer.Failure) {
    let answer = PostAnswer(
      outcome: .failure(failure, detail: "why"), mayHaveLeft: true, bytesSent: 0, bytesReceived: 0, duration: .zero)
    let expected: DeliveryOutcome.Verdict =
      failure == .cancelled
      ? .cancelled : .unavailable(status: nil, cause: "\(failure.rawValue): why", retryAfter: nil)
    #expect(ResponseClass.verdict(answer, to: Self.check(.optional), now: 0) == expected)
  }
}
