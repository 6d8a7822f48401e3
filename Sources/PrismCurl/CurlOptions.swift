import CCurl
import PrismProtocol

/// Sets the options of an easy handle, group by group.
struct CurlOptions {
  private static let joinedBodyBytesMax = 64 * 1024

  let handle: UnsafeMutableRawPointer

  func check(_ code: CURLcode, _ what: String) throws(TransferError) {
    guard code == CURLE_OK else {
      throw TransferError("libcurl refuses the \(what): \(String(cString: curl_easy_strerror(code)))")
    }
  }

  private func set(_ option: CURLoption, _ value: Int, _ what: String) throws(TransferError) {
    try check(prism_curl_set_long(handle, option, value), what)
  }

  private func set(_ option: CURLoption, _ value: String?, _ what: String) throws(TransferError) {
    try check(prism_curl_set_text(handle, option, value), what)
  }

  /// Owned by the caller. Without `Expect: 100-continue`, which costs a round trip and which many servers don't speak.
  func headerList(_ headers: [(name: String, value: String)]) throws(TransferError) -> UnsafeMutablePointer<curl_slist>
  {
    var list: UnsafeMutablePointer<curl_slist>?
    for line in try headers.map(Self.headerLine) + ["Expect:"] {
      guard let longer = curl_slist_append(list, line) else {
        curl_slist_free_all(list)
        throw TransferError("no memory for the headers")
      }
      list = longer
    }
    guard let list else { throw TransferError("no memory for the headers") }
    return list
  }

  private static func headerLine(name: String, value: String) throws(TransferError) -> String {
    guard !(name + value).utf8.contains(where: { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") || $0 == 0 })
    else {
      throw TransferError("the header \(name.prefix { $0.isLetter || $0 == "-" }) holds a line end or a zero byte")
    }
    return value.isEmpty ? "\(name);" : "\(name): \(value)"  // curl's way to send an empty one
  }

  func setRequest(_ request: TransferRequest, headers: UnsafeMutablePointer<curl_slist>?) throws(TransferError) {
    try set(CURLOPT_PROTOCOLS_STR, "http,https", "protocols")
    try set(CURLOPT_URL, request.url, "URL")
    // docs/delivery.md, "HTTP/1.1".
    try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1), "HTTP version")
    if request.needsNewConnection { try set(CURLOPT_FRESH_CONNECT, 1, "new connection") }
    switch request.method {
    case .head: try set(CURLOPT_NOBODY, 1, "method")
    case .get: try set(CURLOPT_HTTPGET, 1, "method")
    case .post, .put, .patch, .delete:
      try set(CURLOPT_POST, 1, "method")
      if request.method != .post { try set(CURLOPT_CUSTOMREQUEST, request.method.rawValue, "method") }
      let size = curl_off_t(request.body.count)
      try check(prism_curl_set_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, size), "body size")
    }
    try check(prism_curl_set_headers(handle, headers), "headers")
    if let path = request.unixSocket { try set(CURLOPT_UNIX_SOCKET_PATH, path, "socket") }
    if CurlURL.isLoopback(request.url) { try set(CURLOPT_PROXY, "", "proxy") }
  }

  func setSafety(_ request: TransferRequest) throws(TransferError) {
    try set(CURLOPT_FOLLOWLOCATION, 0, "redirects")
    try set(CURLOPT_NOSIGNAL, 1, "signals")
    // Else cancelling waits for getaddrinfo to return, and every other transfer with it. The resolving thread cleans
    // up after itself.
    try set(CURLOPT_QUICK_EXIT, 1, "resolver")
    try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1, "proxy's headers")
    try check(
      prism_curl_set_offset(handle, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(request.answerBytesMax)), "answer size")
    // For the debug callback, which counts bytes. Nothing is printed.
    try set(CURLOPT_VERBOSE, 1, "byte counting")
  }

  func setTimes(
    _ request: TransferRequest, stallTimeout: Duration, connectionLifetime: Duration
  ) throws(TransferError) {
    try set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.connectTimeout), "connect timeout")
    try set(CURLOPT_TIMEOUT_MS, milliseconds(request.timeout), "timeout")
    try set(CURLOPT_LOW_SPEED_LIMIT, 1, "lowest speed")
    try set(CURLOPT_LOW_SPEED_TIME, (milliseconds(stallTimeout) + 999) / 1000, "stall timeout")
    try set(CURLOPT_TCP_KEEPALIVE, 1, "keep-alive")
    try set(CURLOPT_MAXAGE_CONN, 60, "age of connections")
    try set(CURLOPT_MAXLIFETIME_CONN, (milliseconds(connectionLifetime) + 999) / 1000, "lifetime of connections")
  }

  /// 0 means "no limit" to curl, and is never meant.
  private func milliseconds(_ duration: Duration) -> Int {
    Int(min(max(duration.millisecondsRoundedUp, 1), Int64(Int32.max)))
  }

  /// The files' contents are handed over instead of their paths: curl keeps connections of other contents apart, and
  /// a rotated file is in force at once.
  func setTLS(_ files: TLSFiles) throws(TransferError) {
    try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2), "TLS version")
    try set(CURLOPT_SSL_VERIFYPEER, 1, "verification")
    try set(CURLOPT_SSL_VERIFYHOST, 2, "verification")
    // curl keeps the machine's CAs for a day else, and a changed bundle would go unseen.
    try set(CURLOPT_CA_CACHE_TIMEOUT, 0, "CA cache")
    if let file = files.caFile {
      try set(CURLOPT_CAPATH, nil, "CA folder")  // a private CA stands alone, not beside the machine's
      try setBlob(CURLOPT_CAINFO_BLOB, "CA file", file)
    }
    if let file = files.certFile { try setBlob(CURLOPT_SSLCERT_BLOB, "certificate file", file) }
    if let file = files.keyFile {
      try setBlob(CURLOPT_SSLKEY_BLOB, "key file", file)
      try set(CURLOPT_KEYPASSWD, "", "key's passphrase")  // an encrypted key must fail, not ask on a terminal
    }
  }

  /// Has curl write a body under 64 KiB with the head, in one call. On a new connection a head in a segment of its own can
  /// cost another round trip. A kept connection is read between the two: an answer that lies there is another request's.
  /// - Parameter body: that of the request. If there is no memory, it goes by itself.
  func joinToHead(_ body: [UInt8]) {
    guard body.count < Self.joinedBodyBytesMax else { return }
    _ = body.withUnsafeBytes { prism_curl_copy_body(handle, $0.baseAddress) }
  }

  /// Closes the connection when the transfer ends. May be called while it runs.
  func keepNoConnection() { _ = prism_curl_set_long(handle, CURLOPT_FORBID_REUSE, 1) }

  private func setBlob(_ option: CURLoption, _ what: String, _ file: HeldFile) throws(TransferError) {
    let bytes = file.content.bytes
    try check(prism_curl_set_blob(handle, option, bytes, bytes.count), what)
  }
}

/// Why there is no answer. Never holds a header's value or a key.
public struct TransferError: Error, CustomStringConvertible {
  /// The cause in words.
  public let description: String
  init(_ description: String) { self.description = description }
}
