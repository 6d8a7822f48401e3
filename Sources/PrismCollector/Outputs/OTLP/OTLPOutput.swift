import CCurl
import PrismBase
import PrismProtocol

/// Sends reports to an OpenTelemetry collector or backend over OTLP/HTTP: what came over OTLP as it came, the others as log
/// records.
actor OTLPOutput: ReportOutput {
  struct Options: Sendable, Equatable {
    /// Without `/v1/logs`.
    var url: String
    /// Names and values, such as `Authorization`.
    var headers: [String] = []
    var timeout: Duration = .seconds(30)
  }

  private static let requestBytesMax = 4 * 1_048_576

  private let executor = DispatchQueueExecutor(label: "prism.collector.otlp")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  private var handle: CurlHandle?
  /// Of reports that come again because others failed: those that the other side answered for, and how many it refused.
  private var answered: (ids: Set<Int64>, refused: Int) = ([], 0)

  init(_ options: Options) { self.options = options }

  func close() { handle = nil }

  /// Sends requests of at most 4 MiB of metas and payloads, one after the other, each signal in the order of its reports.
  /// After a failure the reports come again: those that the other side took are not sent again.
  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> Int {
    for part in Self.parts(of: reports.filter { !answered.ids.contains($0.id) }) {
      answered.refused += try send(part.records, as: part.signal)
      answered.ids.formUnion(part.ids)
    }
    defer { answered = ([], 0) }
    return answered.refused
  }

  private typealias Part = (signal: OTLPSignal, records: [OTLPRecord], ids: [Int64])

  /// The reports of one request each.
  private static func parts(of reports: [StoredReport]) -> [Part] {
    let all = reports.map { (record: OTLPRecord($0), id: $0.id, bytes: $0.meta.count + ($0.payload?.count ?? 0)) }
    var parts: [Part] = []
    for signal in OTLPSignal.allCases {
      var (part, bytes): (Part, Int) = ((signal, [], []), 0)
      for one in all where one.record.signal == signal {
        if bytes + one.bytes > requestBytesMax, !part.ids.isEmpty {
          parts.append(part)
          (part, bytes) = ((signal, [], []), 0)
        }
        part.records.append(one.record)
        part.ids.append(one.id)
        bytes += one.bytes
      }
      if !part.ids.isEmpty { parts.append(part) }
    }
    return parts
  }

  /// - Returns: how many reports the answer refuses for good. A refused request of several is sent again one by one, so
  ///   that one report costs no other.
  private func send(_ records: [OTLPRecord], as signal: OTLPSignal) throws(OutputFailure) -> Int {
    let handle = if let handle { handle } else { try CurlHandle() }
    self.handle = handle
    let answer = try handle.post(
      OTLPRequest(signal, records).text, to: options.url + signal.path,
      headers: ["Content-Type: application/json"] + options.headers, timeout: options.timeout)
    switch answer.status {
    case 200..<300: return min(Self.refusedCount(answer.body, signal), records.count)
    // Retryable by the specification, or mended by an operator.
    case 429, 500..<600, 401, 403, 404: throw OutputFailure("\(options.url) answers \(answer.status)")
    default:
      if records.count == 1 { return 1 }
      var refused = 0
      for record in records { refused += try send([record], as: signal) }
      return refused
    }
  }

  /// The records that a 2xx refuses (`partial_success`): they may not be sent again.
  private static func refusedCount(_ body: [UInt8], _ signal: OTLPSignal) -> Int {
    let count = (try? JSONValue(parsing: body))?["partialSuccess"]?[signal.refused]
    return max(0, count?.int ?? count?.string.flatMap { Int($0) } ?? 0)
  }
}

/// A handle of libcurl for one queue. It keeps its connection.
private final class CurlHandle {
  /// The answer to a partial success has a few hundred bytes.
  private static let answerBytesMax = 65_536

  private let easy: UnsafeMutableRawPointer

  init() throws(OutputFailure) {
    guard let easy = curl_easy_init() else { throw OutputFailure("libcurl has no memory") }
    self.easy = easy
  }

  deinit { curl_easy_cleanup(easy) }

  /// Redirects are not followed. - Returns: the status, and the beginning of the body.
  func post(
    _ body: [UInt8], to url: String, headers: [String], timeout: Duration
  ) throws(OutputFailure) -> (status: Int, body: [UInt8]) {
    var list: UnsafeMutablePointer<curl_slist>?
    for header in headers + ["Expect:"] { list = curl_slist_append(list, header) }
    defer { curl_slist_free_all(list) }
    curl_easy_reset(easy)
    var codes = [
      prism_curl_set_text(easy, CURLOPT_URL, url), prism_curl_set_headers(easy, list),
      prism_curl_set_long(easy, CURLOPT_NOSIGNAL, 1), prism_curl_set_long(easy, CURLOPT_PROTOCOLS, 3),
      prism_curl_set_long(easy, CURLOPT_TIMEOUT_MS, Int(timeout.components.seconds * 1000)),
      prism_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)),
    ]
    var code = CURLE_OK
    let answer = [UInt8](unsafeUninitializedCapacity: Self.answerBytesMax) { buffer, count in
      var kept = prism_curl_beginning(bytes: buffer.baseAddress, count: 0, max: buffer.count)
      code = body.withUnsafeBytes { bytes in
        withUnsafeMutablePointer(to: &kept) { kept in
          codes += [prism_curl_set_body(easy, bytes.baseAddress), prism_curl_keep_beginning(easy, kept)]
          return codes.first { $0 != CURLE_OK } ?? curl_easy_perform(easy)
        }
      }
      count = kept.count
    }
    guard code == CURLE_OK else {
      throw OutputFailure("\(url): \(String(cString: curl_easy_strerror(code)))")
    }
    return (prism_curl_status(easy), answer)
  }
}
