import PrismPacket
import PrismProtocol

/// The meaning of an answer to a POST for its packet: the table "Delivery decision" of docs/delivery.md.
enum ResponseClass {
  typealias Verdict = DeliveryOutcome.Verdict

  /// Statuses by which a receiver refuses a packet for good: they need a proof.
  static let refusals: Set = [400, 410, 413, 415, 422]

  /// - Parameter now: milliseconds since 1970, for a `Retry-After` that is a date.
  static func verdict(_ answer: PostAnswer, to check: ReceiptCheck, now: Int64) -> Verdict {
    switch answer.outcome {
    case .failure(.cancelled, _): return .cancelled
    case .failure(let failure, let detail):
      return .unavailable(status: nil, cause: "\(failure.rawValue): \(detail.cut(atBytes: 200))", retryAfter: nil)
    case .response(let status, let headers, let bytes):
      let body = AnswerBody(bytes, headers["content-type"])
      let receipt = check.check(headers["prism-receipt"], answer: bytes)
      let verdict = classify(status, headers, body, isAccepted: check.accepts(receipt), now)
      let isProven = check.isRefusal(headers["prism-verdict"], status: status, answer: bytes)
      let isNamed = isProven || body.packetID == check.headers.packetID || receipt == .proven || receipt == .named
      guard isNamed || isBelieved(verdict, from: answer.origin, hasForeignReceipt: receipt == .foreign) else {
        return .unproven(status: status)
      }
      guard isFinal(verdict), !isProven, !check.trustsRefusals else { return verdict }
      return .unprovenRefusal(status: status, message: body.message)
    }
  }

  /// Whether the refusal may make dead letters: then the receiver has to prove that it is its own.
  private static func isFinal(_ verdict: Verdict) -> Bool {
    switch verdict {
    case .tooLarge, .unacceptable, .tooOld: true
    case .accepted, .noReceipt, .outOfOrder, .misconfigured, .unavailable, .unknownDictionary, .unproven,
      .unprovenRefusal, .cancelled, .carried:
      false
    }
  }

  /// Whether an answer that doesn't name the packet may decide over it. If it decides nothing for good, it may.
  private static func isBelieved(
    _ verdict: Verdict, from origin: PostAnswer.Origin, hasForeignReceipt: Bool
  ) -> Bool {
    if isFinal(verdict) { return origin == .newConnection }
    guard case .accepted = verdict else { return true }
    return hasForeignReceipt ? origin == .newConnection : origin != .beforeRequestEnd
  }

  private static func classify(
    _ status: Int, _ headers: [String: String], _ body: AnswerBody, isAccepted: Bool, _ now: Int64
  ) -> Verdict {
    let retryAfter = headers["retry-after"].flatMap { RetryAfter.parse($0, serverDate: headers["date"], now: now) }
    switch status {
    case 200...299: return isAccepted ? .accepted(wasDuplicate: body.isDuplicate) : .noReceipt(status: status)
    case 413: return .tooLarge(status: status, message: body.message)
    case 410: return .tooOld(message: body.message, receiverTime: body.time)
    case 415 where body.code == .unknownDictionary: return .unknownDictionary
    case 400, 415, 422:
      guard body.code?.isOfConfiguration == true else { return .unacceptable(status: status, message: body.message) }
      return .misconfigured(status: status, code: body.code, message: body.message)
    case 409 where headers["prism-missing"] != nil, 425 where headers["prism-missing"] != nil:
      return .outOfOrder(status: status, cause: cause(status, body), retryAfter: retryAfter)
    case 503 where body.code == .version:
      return .misconfigured(status: status, code: body.code, message: body.message)
    case 408, 425, 429, 500...599:
      return .unavailable(status: status, cause: cause(status, body), retryAfter: retryAfter)
    // Every other 3xx and 4xx says that any such request is at the wrong door.
    case 300...499: return .misconfigured(status: status, code: body.code, message: body.message)
    default: return .unavailable(status: status, cause: cause(status, body), retryAfter: nil)
    }
  }

  private static func cause(_ status: Int, _ body: AnswerBody) -> String {
    body.message.isEmpty ? "status \(status)" : "status \(status): \(body.message)"
  }
}

/// The body of a collector's answer beside its status: a JSON object with `duplicate`, `message`, `code` and `packetId`
/// (docs/packet.md, What to answer).
private struct AnswerBody {
  var isDuplicate = false
  /// nil if there is no code, or one that this version does not know.
  var code: PacketRefusal?
  var packetID: PacketID?
  /// The receiver's clock, in milliseconds since 1970.
  var time: Int64?
  /// Cut at 512 bytes; empty if there is no message.
  var message = ""

  init(_ bytes: [UInt8], _ contentType: String?) {
    // An answer's body may hold anything: of one that is no such object a line of plain text is taken.
    guard bytes.first == UInt8(ascii: "{"), let value = try? JSONValue(parsing: bytes) else {
      let isText = contentType?.hasPrefix("text/plain") == true
      if isText { message = String(decoding: bytes.prefix(200).prefix { $0 >= UInt8(ascii: " ") }, as: UTF8.self) }
      return
    }
    isDuplicate = value["duplicate"]?.bool ?? false
    code = value["code"]?.string.flatMap { PacketRefusal(rawValue: $0) }
    packetID = value["packetId"]?.string.flatMap { PacketID($0) }
    time = value["time"]?.int.map { Int64($0) }
    message = (value["message"]?.string ?? "").cut(atBytes: 512)
  }
}
