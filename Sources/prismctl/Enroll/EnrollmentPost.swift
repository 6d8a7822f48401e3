import CCurl
import PrismProtocol

/// `POST /prism/enroll` of a collector, once. Redirects are not followed: the token is for this collector only.
struct EnrollmentPost {
  let url: String
  let token: String
  /// Certificates, PEM; nil: those of the system.
  let authorities: String?

  private static let answerBytesMax = 65_536
  private static let timeoutMilliseconds = 30_000

  /// - Parameter url: of the collector, without a path.
  static func address(_ url: String?) throws(Failure) -> String {
    guard let url else { throw .usage("enroll: --url is missing") }
    let isLocal = ["http://127.0.0.1", "http://localhost", "http://[::1]"].contains { head in
      url == head || url.hasPrefix(head + ":") || url.hasPrefix(head + "/")
    }
    guard url.hasPrefix("https://") || isLocal else {
      throw .usage("--url: must be https, or http on 127.0.0.1, [::1] or localhost: the answer holds a key")
    }
    return (url.hasSuffix("/") ? String(url.dropLast()) : url) + "/prism/enroll"
  }

  /// - Returns: the key.
  /// - Throws: 69 if there is no answer, 77 for an answer that refuses the device or the token.
  func send(_ body: JSONValue) throws(Failure) -> EnrolledKey {
    guard let easy = curl_easy_init() else { throw Failure(Failure.software, "libcurl has no memory") }
    defer { curl_easy_cleanup(easy) }
    var code = CURLE_OK
    let text = [UInt8](unsafeUninitializedCapacity: Self.answerBytesMax) { answer, count in
      var kept = prism_curl_beginning(bytes: answer.baseAddress, count: 0, max: answer.count)
      code = withUnsafeMutablePointer(to: &kept) { perform(easy, Array(body.text.utf8), into: $0) }
      count = kept.count
    }
    guard code == CURLE_OK else {
      throw Failure(Failure.unavailable, "\(url): \(String(cString: curl_easy_strerror(code)))")
    }
    let json = try? JSONValue(parsing: text)
    let status = prism_curl_status(easy)
    guard status == 200, let key = json.flatMap({ EnrolledKey($0) }) else {
      let message = json.flatMap { EnrolledKey.reason($0) } ?? "this is no collector of prism"
      throw Failure(
        [401, 403, 409].contains(status) ? Failure.notPermitted : Failure.unavailable,
        "\(url) answers \(status): \(message)")
    }
    return key
  }

  private func perform(
    _ easy: UnsafeMutableRawPointer, _ body: [UInt8], into answer: UnsafeMutablePointer<prism_curl_beginning>
  ) -> CURLcode {
    var headers: UnsafeMutablePointer<curl_slist>?
    for header in ["Content-Type: application/json", "Authorization: Bearer \(token)", "Expect:"] {
      headers = curl_slist_append(headers, header)
    }
    defer { curl_slist_free_all(headers) }
    var codes = [
      prism_curl_set_text(easy, CURLOPT_URL, url), prism_curl_set_headers(easy, headers),
      prism_curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
      prism_curl_set_long(easy, CURLOPT_TIMEOUT_MS, Self.timeoutMilliseconds),
      prism_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)),
      prism_curl_keep_beginning(easy, answer),
    ]
    if let authorities { codes.append(prism_curl_set_text(easy, CURLOPT_CAINFO, authorities)) }
    return body.withUnsafeBytes { bytes in
      codes.append(prism_curl_set_body(easy, bytes.baseAddress))
      return codes.first { $0 != CURLE_OK } ?? curl_easy_perform(easy)
    }
  }
}
