import PrismAdmission
import PrismProtocol

enum OTLPEncoding: String, Sendable, CaseIterable {
  case protobuf = "application/x-protobuf"
  case json = "application/json"

  /// - Parameter contentType: a header's value; parameters after a semicolon count for nothing.
  init?(contentType: String) {
    let type = contentType.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    self.init(rawValue: type)
  }
}

/// Counts what became of the records of a request, and makes its answer (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP
/// Response"). Pure.
struct OTLPOutcome {
  /// The seconds that a client waits where the refusal names no time.
  private static let retrySecondsDefault = 5

  let signal: OTLPSignal
  /// Records, or data points, that are stored.
  var taken = 0
  /// The refusals with how many records, or data points, each is for.
  var refused: [(refusal: Refusal, count: Int)] = []

  /// The crash of an exception is a report beside its record, and no record of its own.
  mutating func take(_ part: InputPart, _ answers: [SubmissionAnswer]) {
    for (index, answer) in answers.enumerated() where !part.beside.contains(index) {
      if let refusal = answer.refusal {
        refuse(refusal, count: signal == .metrics ? part.reports[index].pointCount : 1)
      } else {
        taken += 1
      }
    }
  }

  mutating func refuse(_ refusal: Refusal, count: Int) {
    if let index = refused.firstIndex(where: { $0.refusal == refusal }) {
      refused[index].count += count
    } else {
      refused.append((refusal, count))
    }
  }

  /// A refusal that ends by itself answers the whole request: its client sends it again, and what is stored is not
  /// stored twice. Else the refused records are a partial success, or a fault if no record was taken.
  func answer(_ encoding: OTLPEncoding) -> InputAnswer {
    let passing = refused.first { $0.refusal.otlpStatus == 503 } ?? refused.first { $0.refusal.otlpStatus == 429 }
    if let refusal = passing?.refusal {
      let seconds = refusal.retryMilliseconds.map { max(1, ($0 + 999) / 1000) } ?? Self.retrySecondsDefault
      return encoding.answer(OTLPFault(refusal.otlpStatus, refusal.message), retrySeconds: seconds)
    }
    if taken == 0, let first = refused.first?.refusal {
      return encoding.answer(OTLPFault(first.otlpStatus, first.message))
    }
    let count = refused.reduce(0) { $0 + $1.count }
    let body = count == 0 ? encoding.empty : encoding.partialSuccess(signal, count, reasons)
    return InputAnswer(contentType: encoding.rawValue, body: body)
  }

  /// Each reason once, with its count.
  private var reasons: String {
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
}

extension Submission {
  /// Data points of a metric; 1 if it has no list of them.
  fileprivate var pointCount: Int {
    let meta = [UInt8.openBrace] + members + [.closeBrace]
    guard let tree = try? JSONValue(parsing: meta, allowsDuplicateKeys: true) else { return 1 }
    return max(1, tree.object?.reduce(0) { $0 + ($1.value["dataPoints"]?.array?.count ?? 0) } ?? 0)
  }
}

extension Refusal {
  /// The statuses that OTLP knows as passing are 429 and 503.
  var otlpStatus: Int {
    switch code {
    case .unknownNamespace where retryMilliseconds != nil, .unknownType where retryMilliseconds != nil: 503
    case .gatherOff, .forbidden: 403
    case .storeFull, .rateLimited: 429
    case .busy, .diskFull, .unknown, .internal: 503
    // Of the request; a record that is too large is no fault of the request's size.
    case .payloadTooLarge: 413
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

  /// A google.rpc.Status, with its google.rpc.Code.
  /// - Parameter retrySeconds: `Retry-After`; nil: trying again unchanged is no use.
  func answer(_ fault: OTLPFault, retrySeconds: Int? = nil) -> InputAnswer {
    let code = [403: 7, 413: 8, 429: 8, 503: 14][fault.status] ?? 3
    var body: [UInt8] = []
    switch self {
    case .json: body = JSONValue.object([.init("code", .int(code)), .init("message", .string(fault.message))]).bytes
    case .protobuf:
      body.append(field: 1, varint: UInt64(code))
      body.append(field: 2, bytes: Array(fault.message.utf8))
    }
    return InputAnswer(status: fault.status, contentType: rawValue, body: body, retrySeconds: retrySeconds)
  }
}

extension [UInt8] {
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
