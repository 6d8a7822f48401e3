import CCurl

/// The certificate that a handshake failed at, for the operator who has to replace it. Both functions are called in this
/// file alone: the C code behind them keeps its records for each file.
enum CurlCertificate {
  /// Has curl keep the other side's certificate for `words`. - Throws: what curl refuses.
  static func watch(_ options: CurlOptions, of transfer: TransferMailbox.ID) throws(TransferError) {
    try options.check(prism_curl_watch_certificate(options.handle, transfer), "certificate's record")
  }

  /// curl's own words, and in words what OpenSSL says in codes; with the certificate's subject, issuer and dates if one came.
  /// Called on curl's thread.
  static func words(_ detail: String, of transfer: TransferMailbox.ID) -> String {
    if detail.contains("wrong version number") || detail.contains("packet length too long") {
      return "the port does not speak TLS, but perhaps plain HTTP; the url begins with https (\(detail))"
    }
    guard let seen = prism_curl_certificate(transfer)?.pointee else { return detail }
    let dates = "valid from \(text(seen.from)) until \(text(seen.until))"
    return "\(detail); the certificate is of \(text(seen.subject)), signed by \(text(seen.issuer)), \(dates)"
  }

  /// curl's words about an answer that is not plain HTTP.
  static func plainWords(_ detail: String) -> String {
    guard detail.contains("HTTP/0.9") else { return detail }
    return "the port does not speak HTTP, but perhaps TLS; the url begins with http (\(detail))"
  }

  private static func text<Characters>(_ characters: Characters) -> String {
    withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
