import CCurl

/// Reads a URL as curl itself does.
enum CurlURL {
  /// The host is `localhost`, in 127.0.0.0/8, or `::1`. A URL that curl can't read is not.
  static func isLoopback(_ url: String) -> Bool {
    guard let host = host(of: url) else { return false }
    return host == "localhost" || host == "[::1]" || isIPv4Loopback(host)
  }

  private static func isIPv4Loopback(_ host: String) -> Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  /// Host and port; the URL itself where curl can't read it.
  static func server(of url: String) -> String {
    guard let host = host(of: url), let port = part(CURLUPART_PORT, of: url, CURLU_DEFAULT_PORT) else { return url }
    return "\(host):\(port)"
  }

  private static func host(of url: String) -> String? { part(CURLUPART_HOST, of: url, 0)?.lowercased() }

  private static func part(_ name: CURLUPart, of url: String, _ flags: Int32) -> String? {
    guard let parsed = curl_url() else { return nil }
    defer { curl_url_cleanup(parsed) }
    var part: UnsafeMutablePointer<CChar>?
    guard curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK,
      curl_url_get(parsed, name, &part, UInt32(flags)) == CURLUE_OK, let part
    else { return nil }
    defer { curl_free(part) }
    return String(cString: part)
  }
}
