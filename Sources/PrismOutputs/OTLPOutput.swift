import PrismBase
import PrismConfig
import PrismCurl
import PrismProtocol

/// Sends reports to an OpenTelemetry collector or backend over OTLP/HTTP: what came over OTLP as it came, the others as log
/// records.
actor OTLPOutput: ReportOutput {
  struct Options: Sendable, Equatable {
    /// Without `/v1/logs`.
    var url: String
    /// Names and values, such as `Authorization`.
    var headers: [String] = []
    var encoding = CollectorConfiguration.Output.Encoding.protobuf
    var timeout: Duration = .seconds(30)
  }

  private static let reportsMax = 1000

  private let executor = DispatchQueueExecutor(label: "prism.collector.otlp")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  private var client = CurlClient()
  /// Of metas and payloads in a request; less once something on the way took no request of this size.
  private var requestBytesMax = 4 * 1_048_576
  /// Reports in a request: one after a request that was refused in part, since its answer does not say which. Each page
  /// without refusals doubles it.
  private var requestReportsMax = reportsMax
  /// Of reports that come again because others failed: those that the other side answered for, and its refusals.
  private var answered: (ids: Set<Int64>, refused: [RefusedReport]) = ([], [])

  init(_ options: Options) { self.options = options }

  nonisolated var batching: ReportBatching { .large }

  func close() { client = CurlClient() }

  /// Sends requests of at most 4 MiB of metas and payloads, one after the other, each signal in the order of its reports. The
  /// next one is made while the other side works on one. After a failure the reports come again: those that the other side
  /// took are not sent again.
  func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> [RefusedReport] {
    let parts = parts(of: reports.filter { !answered.ids.contains($0.id) })
    var next: Task<OTLPRequest.Body, Never>?
    for (index, part) in parts.enumerated() {
      let body = await (next ?? Self.begin(part, options.encoding)).value
      next = index + 1 < parts.count ? Self.begin(parts[index + 1], options.encoding) : nil
      do throws(OutputFailure) { try send(part, body) } catch {
        let taken = reports.prefix { answered.ids.contains($0.id) }
        throw OutputFailure(error.description, taken: taken.count, refused: refused(of: taken))
      }
    }
    defer { answered = ([], []) }
    let refused = refused(of: reports[...])
    if refused.isEmpty { requestReportsMax = min(Self.reportsMax, requestReportsMax * 2) }
    return refused
  }

  private func refused(of reports: ArraySlice<StoredReport>) -> [RefusedReport] {
    answered.refused.filter { one in reports.contains { $0.id == one.id } }
  }

  private struct Part {
    let signal: OTLPSignal
    var reports: [StoredReport] = []
    var bytes: Int { reports.reduce(0) { $0 + $1.bytes } }

    func body(_ encoding: CollectorConfiguration.Output.Encoding) -> OTLPRequest.Body {
      OTLPRequest.body(signal, reports, encoding)
    }
  }

  /// Makes a body on another thread.
  private static func begin(
    _ part: Part, _ encoding: CollectorConfiguration.Output.Encoding
  ) -> Task<OTLPRequest.Body, Never> {
    Task { part.body(encoding) }
  }

  private func parts(of reports: [StoredReport]) -> [Part] {
    var parts: [Part] = []
    for signal in OTLPSignal.allCases {
      var (part, bytes) = (Part(signal: signal), 0)
      for report in reports where report.signal == signal {
        let isFull = bytes + report.bytes > requestBytesMax || part.reports.count == requestReportsMax
        if isFull, !part.reports.isEmpty {
          parts.append(part)
          (part, bytes) = (Part(signal: signal), 0)
        }
        part.reports.append(report)
        bytes += report.bytes
      }
      if !part.reports.isEmpty { parts.append(part) }
    }
    return parts
  }

  /// Sends a part until the backend answered for each of its records. A part that is refused or too large is sent in
  /// halves, so that one report costs no other.
  private func send(_ part: Part, _ body: OTLPRequest.Body) throws(OutputFailure) {
    let answer = try client.post(
      body.bytes, to: options.url + part.signal.path, headers: ["Content-Type: \(body.mediaType)"] + options.headers,
      timeout: options.timeout)
    let (verdict, isOne) = (OTLPVerdict(answer, part.signal), part.reports.count == 1)
    switch verdict {
    case .taken(let count, let cause):
      let refused = count == 0 ? [] : part.reports
      if count > 0 { requestReportsMax = 1 }
      let all =
        "\(count) of the \(refused.count) reports of its request, whose dead letters all have this cause: \(cause); "
        + "requeue sends the others a second time"
      note(
        part,
        refused: refused.indices.map {
          RefusedReport(id: refused[$0].id, cause: isOne ? cause : all, isDelivered: $0 >= count)
        })
    case .refused(let cause) where isOne: note(part, refused: [RefusedReport(id: part.reports[0].id, cause: cause)])
    case .held(let cause): throw OutputFailure("\(part.signal.path) \(cause)")
    case .tooLarge(let cause) where isOne:
      throw OutputFailure("\(part.signal.path) \(cause): one report has \(part.bytes) bytes")
    case .refused, .tooLarge:
      if case .tooLarge = verdict { requestBytesMax = max(1, part.bytes / 2) }
      let middle = part.reports.count / 2
      for half in [part.reports[..<middle], part.reports[middle...]] {
        let half = Part(signal: part.signal, reports: Array(half))
        try send(half, half.body(options.encoding))
      }
    }
  }

  private func note(_ part: Part, refused: [RefusedReport]) {
    answered.ids.formUnion(part.reports.map(\.id))
    answered.refused += refused
  }
}

/// The meaning of an answer for the records of its request (opentelemetry.io, "OTLP Specification"). Only an answer that is
/// OTLP's own, about these records, makes an output skip some of them.
enum OTLPVerdict: Equatable {
  /// - Parameters:
  ///   - refused: how many of them the backend refuses for good.
  ///   - cause: its words for it.
  case taken(refused: Int, cause: String)
  /// The backend can't take the request, now or later.
  case refused(String)
  /// Something on the way takes smaller requests only.
  case tooLarge(String)
  /// It proves nothing about the records, so they wait.
  case held(String)

  private static let causeBytesMax = 256
  /// Of google.rpc.Code: of the server's state and of rights, not of the records.
  private static let passingCodes = [1, 4, 7, 8, 10, 14, 16]

  init(_ answer: CurlClient.Answer, _ signal: OTLPSignal) {
    let text = "answers \(answer.status)" + (answer.mediaType.isEmpty ? "" : " (\(answer.mediaType.prefix(64)))")
    let held = "\(text): \(Self.advice(for: answer.status))"
    switch answer.status {
    case 200..<300:
      let counts = Self.partialSuccess(answer, signal)
      self = counts.map { .taken(refused: $0.refused, cause: $0.cause) } ?? .held(held)
    case 400: self = Self.statusMessage(answer).map { .refused("\(text): \($0)") } ?? .held(held)
    case 413: self = .tooLarge(held)
    default: self = .held(held)
    }
  }

  private static func advice(for status: Int) -> String {
    switch status {
    case 200..<300: "this is no answer of OTLP; look at `otlp`, and at proxies on the way"
    case 300..<400: "redirects are not followed; correct `otlp`"
    case 400: "this is no Status of OTLP, so it may be of a proxy on the way"
    case 401, 402, 403, 407: "correct `headers`, or the rights at the backend"
    case 404, 405, 415, 421: "look whether `otlp` is the address of an OTLP backend"
    case 413: "raise the size that the backend, or a proxy on the way, takes"
    default: "it is tried again"
    }
  }

  /// The records that a 2xx refuses (`partial_success`): they may not be sent again. nil: no answer of OTLP.
  private static func partialSuccess(
    _ answer: CurlClient.Answer, _ signal: OTLPSignal
  ) -> (refused: Int, cause: String)? {
    if answer.body.isEmpty {
      // Protobuf's empty message. Fluent Bit answers 201 without a type. A proxy answers 204, or 200 without OTLP's type.
      let isOTLP = answer.status == 200 && ["application/x-protobuf", "application/json"].contains(answer.mediaType)
      return isOTLP || answer.status == 201 && answer.mediaType.isEmpty ? (0, "") : nil
    }
    switch answer.mediaType {
    case "application/json":
      let names = ["partialSuccess", "partial_success"]
      guard let json = try? JSONValue(parsing: answer.body), let members = json.object,
        members.allSatisfy({ names.contains($0.key) })
      else { return nil }
      let partial = members.first?.value
      let count = partial?[signal.rejectedName] ?? partial?[signal.rejectedName.snakeCased]
      let message = partial?["errorMessage"] ?? partial?["error_message"]
      return (max(0, count?.int ?? count?.string.flatMap { Int($0) } ?? 0), shortened(message?.string ?? ""))
    case "application/x-protobuf":
      guard let fields = ProtobufFields(answer.body), fields.numbers.isSubset(of: [1]) else { return nil }
      guard let partial = fields.bytes(1).map({ ProtobufFields($0) }) else { return (0, "") }
      guard let partial else { return nil }
      return (
        Int(clamping: partial.number(1) ?? 0),
        shortened(String(decoding: partial.bytes(2) ?? [], as: UTF8.self))
      )
    default: return nil
    }
  }

  /// The message of `google.rpc.Status`, which a backend gives with a 400. A gateway's answer may have a `message`, too,
  /// but no `code` of 1 to 16. nil: the body is no Status that refuses records.
  private static func statusMessage(_ answer: CurlClient.Answer) -> String? {
    let (code, message): (Int?, String)
    switch answer.mediaType {
    case "application/json":
      guard let json = try? JSONValue(parsing: answer.body), let members = json.object,
        members.allSatisfy({ ["code", "message", "details"].contains($0.key) })
      else { return nil }
      (code, message) = (json["code"]?.int, json["message"]?.string ?? "")
    case "application/x-protobuf":
      guard let fields = ProtobufFields(answer.body), fields.numbers.isSubset(of: [1, 2, 3]) else { return nil }
      let bytes = fields.bytes(2) ?? []
      (code, message) = (fields.number(1).map { Int(clamping: $0) }, String(decoding: bytes, as: UTF8.self))
    default: return nil
    }
    guard let code, (1...16).contains(code), !passingCodes.contains(code) else { return nil }
    return shortened(message.isEmpty ? "code \(code)" : message)
  }

  private static func shortened(_ text: String) -> String {
    let safe = text.utf8.prefix(causeBytesMax).map { max($0, UInt8(ascii: " ")) }
    return String(decoding: safe, as: UTF8.self)
  }
}

/// The fields of a message of protobuf; of a field that comes several times the last one.
private struct ProtobufFields {
  private var varints: [UInt64: UInt64] = [:]
  private var texts: [UInt64: [UInt8]] = [:]

  var numbers: Set<UInt64> { Set(varints.keys).union(texts.keys) }
  func number(_ field: UInt64) -> UInt64? { varints[field] }
  func bytes(_ field: UInt64) -> [UInt8]? { texts[field] }

  /// nil: the bytes are no message.
  init?(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      guard let key = Self.varint(&rest), key >> 3 > 0 else { return nil }
      switch key & 7 {
      case 0:
        guard let value = Self.varint(&rest) else { return nil }
        varints[key >> 3] = value
      case 2:
        guard let count = Self.varint(&rest), count <= rest.count else { return nil }
        texts[key >> 3] = Array(rest.prefix(Int(count)))
        rest = rest.dropFirst(Int(count))
      default: return nil
      }
    }
  }

  private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      guard let byte = rest.popFirst() else { return nil }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
    }
    return nil
  }
}
