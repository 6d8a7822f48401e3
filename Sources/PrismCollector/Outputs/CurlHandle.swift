import CCurl

/// A handle of libcurl for one queue. It keeps its connection.
final class CurlHandle {
  /// The answer to a partial success has a few hundred bytes.
  static let answerBytesMax = 65_536

  struct Answer: Equatable {
    var status: Int
    /// In lower case, without parameters; empty: the answer has no type.
    var mediaType = ""
    /// The value of the header that was asked for.
    var header: String?
    /// Its beginning.
    var body: [UInt8] = []
  }

  private let easy: UnsafeMutableRawPointer

  init() throws(OutputFailure) {
    guard let easy = curl_easy_init() else { throw OutputFailure("libcurl has no memory") }
    self.easy = easy
  }

  deinit { curl_easy_cleanup(easy) }

  /// Redirects are not followed.
  /// - Parameters:
  ///   - method: nil: POST.
  ///   - unixSocket: the path of the socket that it goes through; nil: over TCP.
  ///   - header: of the answer, that the caller wants.
  ///   - takesHead: the head of an answer is one: its body is not read, and need not end.
  func post(
    _ body: [UInt8], to url: String, headers: [String], timeout: Duration, method: String? = nil,
    unixSocket: String? = nil, header: String? = nil, takesHead: Bool = false, answerBytesMax: Int = answerBytesMax
  ) throws(OutputFailure) -> Answer {
    var list: UnsafeMutablePointer<curl_slist>?
    for header in headers + ["Expect:"] { list = curl_slist_append(list, header) }
    defer { curl_slist_free_all(list) }
    curl_easy_reset(easy)
    var codes = [
      prism_curl_set_text(easy, CURLOPT_URL, url), prism_curl_set_headers(easy, list),
      prism_curl_set_long(easy, CURLOPT_NOSIGNAL, 1), prism_curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
      // A busy output resolves the name again, as the daemon does.
      prism_curl_set_long(easy, CURLOPT_MAXLIFETIME_CONN, 120),
      prism_curl_set_long(easy, CURLOPT_TIMEOUT_MS, Int(timeout.components.seconds * 1000)),
      prism_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)),
      prism_curl_set_text(easy, CURLOPT_UNIX_SOCKET_PATH, unixSocket),
      prism_curl_set_text(easy, CURLOPT_CUSTOMREQUEST, method),
    ]
    var code = CURLE_OK
    let answer = [UInt8](unsafeUninitializedCapacity: answerBytesMax) { buffer, count in
      var kept = prism_curl_beginning(bytes: buffer.baseAddress, count: 0, max: buffer.count)
      code = body.withUnsafeBytes { bytes in
        withUnsafeMutablePointer(to: &kept) { kept in
          codes += [prism_curl_set_body(easy, bytes.baseAddress), prism_curl_keep_beginning(easy, kept)]
          return codes.first { $0 != CURLE_OK } ?? curl_easy_perform(easy)
        }
      }
      count = kept.count
    }
    guard code == CURLE_OK || takesHead && prism_curl_status(easy) >= 200 else {
      throw OutputFailure("\(url): \(String(cString: curl_easy_strerror(code)))")
    }
    let type = prism_curl_content_type(easy).map { String(cString: $0) } ?? ""
    let mediaType = type.prefix { $0 != ";" && $0 != " " }.lowercased()
    let value = header.flatMap { prism_curl_header(easy, $0) }.map { String(cString: $0) }
    return Answer(status: prism_curl_status(easy), mediaType: mediaType, header: value, body: answer)
  }
}
