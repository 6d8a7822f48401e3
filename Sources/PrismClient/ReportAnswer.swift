public import PrismProtocol

/// The daemon's answer to one report.
public enum ReportAnswer: Sendable, Equatable {
  /// On disk, as the daemon's `durability` says. `isDuplicate`: it was there already under this id.
  /// `isPayloadLeftOut`: without its payload, since its type has no `isUploadPayload`, or the payload is too large.
  case stored(reportID: String, isDuplicate: Bool, isPayloadLeftOut: Bool = false)
  /// Left out by the `sample` of its type: there is nothing to send again.
  case sampled
  /// Not stored; the code says whether sending it again makes sense.
  case refused(Refusal)

  /// - Throws: `protocolViolation` for a line that is no answer of the mode `each`.
  init(parsing line: [UInt8]) throws(ClientError) {
    guard let value = try? JSONValue(parsing: line), let status = value["status"]?.string else {
      throw .protocolViolation("an answer without a status")
    }
    if status == "stored", let id = value["reportId"]?.string {
      self = .stored(
        reportID: id, isDuplicate: value["duplicate"]?.bool ?? false,
        isPayloadLeftOut: value["payloadLeftOut"]?.bool ?? false)
    } else if status == "sampled" {
      self = .sampled
    } else if let refusal = Refusal(value) {
      self = .refused(refusal)
    } else {
      throw .protocolViolation("an answer that is neither stored nor sampled nor refused")
    }
  }
}

extension Refusal {
  /// The members `code`, `message` and `retryMs` of an answer; a code that this version does not know is `internal`.
  init?(_ value: JSONValue) {
    guard let code = value["code"]?.string else { return nil }
    self.init(code: code, message: value["message"]?.string ?? "", retryMilliseconds: value["retryMs"]?.int)
  }

  init(code: String, message: String, retryMilliseconds: Int?) {
    let known = RefusalCode(rawValue: code)
    self.init(
      known ?? .internal, known == nil ? "\(code): \(message)" : message, retryMilliseconds: retryMilliseconds)
  }
}
