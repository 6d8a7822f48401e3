import PrismHTTP
import PrismInputs
import PrismProtocol

/// Answers as the text of HTTP/1.1.
enum HTTPAnswer {
  static func render(
    _ answer: InputAnswer, keepAlive: Bool, etag: Int64? = nil, allow: String? = nil
  ) -> [UInt8] {
    let status = answer.status
    var head = "HTTP/1.1 \(status) \(HTTPResponse.reason(status))\r\nContent-Type: \(answer.contentType)\r\n"
    if status != 304 { head += "Content-Length: \(answer.body.count)\r\n" }
    if let etag { head += "ETag: \"\(etag)\"\r\n" }
    if let allow { head += "Allow: \(allow)\r\n" }
    if let seconds = answer.retrySeconds { head += "Retry-After: \(seconds)\r\n" }
    if !keepAlive { head += "Connection: close\r\n" }
    return Array(head.utf8) + [UInt8(ascii: "\r"), UInt8(ascii: "\n")] + answer.body
  }

  static func status(_ code: RefusalCode) -> Int {
    switch code {
    case .badRequest, .unknownNamespace, .unknownType, .unknownTable, .referenceMissing: 400
    case .gatherOff, .forbidden, .readOnly: 403
    case .versionMismatch: 412
    case .metaTooLarge, .payloadTooLarge: 413
    case .storeFull, .rateLimited, .tableFull: 429
    case .busy, .diskFull, .unknown, .internal: 503
    }
  }
}

extension InputAnswer {
  /// - Parameter body: nil: the line of the refusal.
  init(_ refusal: Refusal, body: [UInt8]? = nil) {
    self.init(
      status: HTTPAnswer.status(refusal.code), body: body ?? AnswerText.refused(refusal),
      retrySeconds: refusal.retryMilliseconds.map { ($0 + 999) / 1000 })
  }
}
