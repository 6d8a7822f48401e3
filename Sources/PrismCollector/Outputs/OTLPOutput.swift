import CCurl
import PrismBase
import PrismProtocol

/// Sends reports to an OpenTelemetry collector or backend as log records, over OTLP/HTTP.
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

  init(_ options: Options) { self.options = options }

  func close() { handle = nil }

  /// Sends requests of at most 4 MiB of metas and payloads, one after the other.
  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> Int {
    var (part, bytes, refused) = ([StoredReport](), 0, 0)
    for report in reports {
      let size = report.meta.count + (report.payload?.count ?? 0)
      if bytes + size > Self.requestBytesMax, !part.isEmpty {
        refused += try send(part)
        (part, bytes) = ([], 0)
      }
      part.append(report)
      bytes += size
    }
    return part.isEmpty ? refused : refused + (try send(part))
  }

  /// - Returns: how many reports the answer refuses for good. A refused request of several is sent again one by one, so
  ///   that one report costs no other.
  private func send(_ reports: [StoredReport]) throws(OutputFailure) -> Int {
    let handle = if let handle { handle } else { try CurlHandle() }
    self.handle = handle
    let status = try handle.post(
      OTLPLogs.request(reports), to: options.url + "/v1/logs",
      headers: ["Content-Type: application/json"] + options.headers, timeout: options.timeout)
    switch status {
    case 200..<300: return 0
    // Retryable by the specification, or mended by an operator.
    case 429, 500..<600, 401, 403, 404: throw OutputFailure("\(options.url) answers \(status)")
    default:
      if reports.count == 1 { return 1 }
      var refused = 0
      for report in reports { refused += try send([report]) }
      return refused
    }
  }
}

/// A handle of libcurl for one queue. It keeps its connection.
private final class CurlHandle {
  private let easy: UnsafeMutableRawPointer

  init() throws(OutputFailure) {
    guard let easy = curl_easy_init() else { throw OutputFailure("libcurl has no memory") }
    self.easy = easy
  }

  deinit { curl_easy_cleanup(easy) }

  /// Redirects are not followed. - Returns: the status.
  func post(
    _ body: [UInt8], to url: String, headers: [String], timeout: Duration
  ) throws(OutputFailure) -> Int {
    var list: UnsafeMutablePointer<curl_slist>?
    for header in headers + ["Expect:"] { list = curl_slist_append(list, header) }
    defer { curl_slist_free_all(list) }
    curl_easy_reset(easy)
    var codes = [
      prism_curl_set_text(easy, CURLOPT_URL, url), prism_curl_set_headers(easy, list),
      prism_curl_set_long(easy, CURLOPT_NOSIGNAL, 1), prism_curl_set_long(easy, CURLOPT_PROTOCOLS, 3),
      prism_curl_set_long(easy, CURLOPT_TIMEOUT_MS, Int(timeout.components.seconds * 1000)),
      prism_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)),
      prism_curl_drop_body(easy),
    ]
    let code = body.withUnsafeBytes { bytes in
      codes.append(prism_curl_set_body(easy, bytes.baseAddress))
      return codes.first { $0 != CURLE_OK } ?? curl_easy_perform(easy)
    }
    guard code == CURLE_OK else {
      throw OutputFailure("\(url): \(String(cString: curl_easy_strerror(code)))")
    }
    return prism_curl_status(easy)
  }
}
