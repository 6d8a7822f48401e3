import PrismProtocol

/// How a request and its answer are encoded.
enum OTLPEncoding: String, Sendable, CaseIterable {
  case protobuf = "application/x-protobuf"
  case json = "application/json"

  /// - Parameter contentType: a header's value; parameters after a semicolon count for nothing.
  init?(contentType: String) {
    let type = contentType.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    self.init(rawValue: type)
  }
}

/// The answer to an OTLP request (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP Response"). Pure.
struct OTLPAnswer: Sendable, Equatable {
  let status: Int
  let body: [UInt8]
  let encoding: OTLPEncoding
  /// `Retry-After`; nil: trying again unchanged is no use.
  let retrySeconds: Int?

  /// The seconds that a client waits where the refusal names no time.
  static let retrySecondsDefault = 5

  init(fault: OTLPFault, _ encoding: OTLPEncoding, retrySeconds: Int? = nil) {
    (status, self.encoding, self.retrySeconds) = (fault.status, encoding, retrySeconds)
    body = encoding.status(code: Self.statusCode(fault.status), fault.message)
  }

  /// - Parameter taken: records that are stored.
  /// - Parameter refused: the refusals with how many records, or data points, each is for.
  ///
  /// A refusal that ends by itself answers the whole request: its client sends it again, and what is stored is not
  /// stored twice. Else the refused records are a partial success, or a fault if no record was taken.
  init(
    _ signal: OTLPSignal, _ encoding: OTLPEncoding, taken: Int, refused: [(refusal: Refusal, count: Int)]
  ) {
    let passing = refused.first { $0.refusal.otlpStatus == 503 } ?? refused.first { $0.refusal.otlpStatus == 429 }
    if let refusal = passing?.refusal {
      let seconds = refusal.retryMilliseconds.map { max(1, ($0 + 999) / 1000) } ?? Self.retrySecondsDefault
      self.init(fault: OTLPFault(refusal.otlpStatus, refusal.message), encoding, retrySeconds: seconds)
    } else if taken == 0, let first = refused.first?.refusal {
      self.init(fault: OTLPFault(first.otlpStatus, first.message), encoding)
    } else {
      let count = refused.reduce(0) { $0 + $1.count }
      self.init(
        status: 200, count == 0 ? encoding.empty : encoding.partialSuccess(signal, count, Self.reasons(refused)),
        encoding)
    }
  }

  private init(status: Int, _ body: [UInt8], _ encoding: OTLPEncoding) {
    (self.status, self.body, self.encoding, retrySeconds) = (status, body, encoding, nil)
  }

  /// Each reason once, with its count.
  private static func reasons(_ refused: [(refusal: Refusal, count: Int)]) -> String {
    var counts: [(message: String, count: Int)] = []
    for (refusal, count) in refused {
      if let index = counts.firstIndex(where: { $0.message == refusal.message }) {
        counts[index].count += count
      } else {
        counts.append((refusal.message, count))
      }
    }
    let shown = counts.prefix(5).map { "\($0.count): \($0.message)" }
    return shown.joined(separator: "; ") + (counts.count > 5 ? "; and \(counts.count - 5) other reasons" : "")
  }

  /// google.rpc.Code.
  private static func statusCode(_ status: Int) -> Int {
    switch status {
    case 403: 7
    case 413, 429: 8
    case 503: 14
    default: 3
    }
  }
}

extension Refusal {
  /// The statuses that OTLP knows as passing are 429 and 503.
  var otlpStatus: Int {
    switch code {
    case .unknownNamespace where retryMilliseconds != nil: 503
    case .gatherOff, .forbidden: 403
    case .storeFull, .rateLimited: 429
    case .busy, .diskFull, .unknown, .internal: 503
    case .payloadTooLarge, .metaTooLarge: 413
    default: 400
    }
  }
}

extension OTLPEncoding {
  /// An export response that says nothing.
  fileprivate var empty: [UInt8] { self == .json ? Array("{}".utf8) : [] }

  fileprivate func partialSuccess(_ signal: OTLPSignal, _ count: Int, _ reason: String) -> [UInt8] {
    switch self {
    case .json:
      let partial: JSONValue = .object([
        .init(signal.rejectedName, .string(String(count))), .init("errorMessage", .string(reason)),
      ])
      return JSONValue.object([.init("partialSuccess", partial)]).bytes
    case .protobuf:
      var inner: [UInt8] = []
      inner.append(field: 1, varint: UInt64(count))
      inner.append(field: 2, bytes: Array(reason.utf8))
      var outer: [UInt8] = []
      outer.append(field: 1, bytes: inner)
      return outer
    }
  }

  /// google.rpc.Status.
  fileprivate func status(code: Int, _ message: String) -> [UInt8] {
    switch self {
    case .json: return JSONValue.object([.init("code", .int(code)), .init("message", .string(message))]).bytes
    case .protobuf:
      var result: [UInt8] = []
      result.append(field: 1, varint: UInt64(code))
      result.append(field: 2, bytes: Array(message.utf8))
      return result
    }
  }
}

extension [UInt8] {
  mutating func append(varint: UInt64) {
    var rest = varint
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }

  mutating func append(field: Int, varint: UInt64) {
    append(varint: UInt64(field << 3))
    append(varint: varint)
  }

  mutating func append(field: Int, bytes: [UInt8]) {
    append(varint: UInt64(field << 3 | 2))
    append(varint: UInt64(bytes.count))
    append(contentsOf: bytes)
  }
}
