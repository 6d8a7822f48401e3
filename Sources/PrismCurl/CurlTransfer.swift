import CCurl
import Glibc
import PrismBase
import PrismProtocol

/// One POST or GET: what goes out, what has come in, and the callbacks by which curl asks and tells. Lives on curl's thread.
final class CurlTransfer {
  let job: TransferMailbox.Job
  let handle: UnsafeMutableRawPointer

  private var collector: AnswerCollector
  private var bodyOffset = 0
  /// A connection was open and the request was about to be written: from here on a byte may have left. Stays set when
  /// curl tries again on another connection.
  private var mayHaveLeft = false
  /// The connection carried other requests before this one.
  private var isOnKeptConnection = false
  /// Of the body, on this connection.
  private var bodyBytesSent = 0
  /// The answer began before the body was sent whole.
  private var isEarly = false
  private var bytesSent = 0, bytesReceived = 0
  private var headerList: UnsafeMutablePointer<curl_slist>?
  private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

  init(_ job: TransferMailbox.Job, handle: UnsafeMutableRawPointer) {
    (self.job, self.handle) = (job, handle)
    collector = AnswerCollector(
      bodyBytesKept: job.request.answerBytesKept, bodyBytesMax: job.request.answerBytesMax)
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    curl_slist_free_all(headerList)
    errorText.deallocate()
  }

  /// Sets every option of the handle, which is fresh or was reset. - Throws: what can't be set or read, and why.
  func prepare(stallTimeout: Duration, connectionLifetime: Duration) throws(TransferError) {
    let options = CurlOptions(handle: handle)
    headerList = try options.headerList(job.request.headers)
    try options.setRequest(job.request, headers: headerList)
    try options.setSafety(job.request)
    try options.setTimes(job.request, stallTimeout: stallTimeout, connectionLifetime: connectionLifetime)
    try options.setTLS(job.request.tls)
    if job.request.url.hasPrefix("https") { try CurlCertificate.watch(options, of: job.id) }
    try options.check(prism_curl_set_error_buffer(handle, errorText), "error buffer")
    try setCallbacks(options)
  }

  private func setCallbacks(_ options: CurlOptions) throws(TransferError) {
    let code = prism_curl_set_callbacks(
      handle, Unmanaged.passUnretained(self).toOpaque(),
      { CurlTransfer.at($3).read(into: UnsafeMutableRawBufferPointer(start: $0, count: $1 * $2)) },
      { CurlTransfer.at($0).seek(to: $1, origin: $2) },
      { CurlTransfer.at($3).takeHeader(UnsafeRawBufferPointer(start: $0, count: $1 * $2)) },
      { CurlTransfer.at($3).takeBody(UnsafeRawBufferPointer(start: $0, count: $1 * $2)) },
      { context, _, _, _, _ in
        CurlTransfer.at(context).begin()
        return CURL_PREREQFUNC_OK
      },
      { _, type, _, count, context in
        CurlTransfer.at(context).count(type, count)
        return 0
      })
    try options.check(code, "callbacks")
  }

  /// The transfer that curl was given as context; the loop keeps it alive for as long as curl may call.
  private static func at(_ context: UnsafeMutableRawPointer?) -> CurlTransfer {
    guard let context else { preconditionFailure("libcurl lost the context that it was given") }
    return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  /// A connection is there, and the request is about to be written.
  private func begin() {
    (isOnKeptConnection, bodyBytesSent, mayHaveLeft) = (prism_curl_connects(handle) == 0, 0, true)
    if !isOnKeptConnection, job.request.method == .post { CurlOptions(handle: handle).joinToHead(job.request.body) }
  }

  private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let body = job.request.body
    let count = min(buffer.count, body.count - bodyOffset)
    body.withUnsafeBytes { body in
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: body[bodyOffset..<bodyOffset + count]))
    }
    bodyOffset += count
    return count
  }

  /// curl sends again from the start when a kept connection was dead.
  private func seek(to offset: curl_off_t, origin: Int32) -> Int32 {
    guard origin == SEEK_SET, let offset = Int(exactly: offset), (0...job.request.body.count).contains(offset)
    else {
      return CURL_SEEKFUNC_FAIL
    }
    bodyOffset = offset
    return CURL_SEEKFUNC_OK
  }

  /// Anything but the count that came makes curl abort.
  private func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
    if isOnKeptConnection, bodyBytesSent < job.request.body.count { isEarly = true }
    guard collector.take(headerLine: line) else { return line.count &+ 1 }
    if collector.isHeadWhole && !isWorthKeeping { CurlOptions(handle: handle).keepNoConnection() }
    return line.count
  }

  /// After an answer that may be another request's the connection would be one answer behind from then on.
  private var isWorthKeeping: Bool {
    guard let status = collector.status, status >= 200 else { return true }  // an interim answer
    let packet = job.request.headers.first { $0.name == "Prism-Packet-Id" }?.value.lowercased()
    // The packet's id, and then the proof.
    let receipt = collector.headers["prism-receipt"].map { $0.prefix { $0 != " " }.lowercased() } ?? packet
    return status < 300 && !isEarly && receipt == packet
  }

  private func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard let file = job.file, collector.status == 200 else {
      return collector.take(body: bytes) ? bytes.count : bytes.count &+ 1
    }
    return collector.take(filed: bytes.count, fault: file.download(bytes)) ? bytes.count : bytes.count &+ 1
  }

  private func count(_ type: curl_infotype, _ bytes: Int) {
    switch type {
    case CURLINFO_HEADER_OUT: bytesSent += bytes
    case CURLINFO_DATA_OUT:
      bytesSent += bytes
      bodyBytesSent += bytes
    case CURLINFO_HEADER_IN, CURLINFO_DATA_IN: bytesReceived += bytes
    default: break
    }
  }

  /// The result, once curl says that the transfer is done.
  func answer(_ code: CURLcode) -> PostAnswer {
    var answer = PostAnswer(
      outcome: outcome(code), mayHaveLeft: mayHaveLeft, bytesSent: bytesSent, bytesReceived: bytesReceived,
      duration: .microseconds(prism_curl_total_microseconds(handle)))
    var roundTrip = prism_round_trip()
    if code == CURLE_OK, prism_curl_round_trip(handle, &roundTrip) == 0 {
      answer.line = LineReading(
        roundTrip: .microseconds(Int64(roundTrip.microseconds)),
        least: .microseconds(Int64(roundTrip.least_microseconds)))
    }
    if isOnKeptConnection { answer.origin = isEarly ? .beforeRequestEnd : .keptConnection }
    return answer
  }

  private func outcome(_ code: CURLcode) -> PostAnswer.Outcome {
    let hasStatus = collector.status.map { $0 >= 200 } ?? false
    guard code == CURLE_OK || job.request.takesHead && hasStatus else {
      let said = collector.overrun ?? String(cString: errorText)
      let detail = said.isEmpty ? String(cString: curl_easy_strerror(code)) : said
      let failure = PostAnswer.Failure(code, mayHaveLeft: mayHaveLeft, detail: detail)
      return .failure(failure, detail: words(failure, detail))
    }
    guard let status = collector.status, hasStatus else {
      return .failure(.badResponse, detail: "no final status line")
    }
    guard collector.isHeadWhole || job.request.takesHead else {
      return .failure(.reset, detail: "the connection was closed within the headers")
    }
    return .response(status: status, headers: collector.headers, body: collector.body)
  }

  private func words(_ failure: PostAnswer.Failure, _ detail: String) -> String {
    switch failure {
    case .tls: CurlCertificate.words(detail, of: job.id)
    case .badResponse: CurlCertificate.plainWords(detail)
    case .resolve, .connect, .timeout, .reset, .cancelled, .local: detail
    }
  }
}

extension PostAnswer.Failure {
  /// Makes the daemon's failure from libcurl's code.
  /// - Parameter mayHaveLeft: the connection was open and the request had begun.
  /// - Parameter detail: curl's own words.
  init(_ code: CURLcode, mayHaveLeft: Bool, detail: String) {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: self = .resolve
    case CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_INTERFACE_FAILED: self = .connect
    case CURLE_OPERATION_TIMEDOUT: self = .timeout
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_CLIENTCERT, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
      CURLE_USE_SSL_FAILED:
      self = .tls
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
      // In TLS 1.3 a server refuses the client's certificate after the handshake: by an alert in place of the answer.
      self = detail.contains("alert") ? .tls : .reset
    case CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE: self = mayHaveLeft ? .reset : .connect
    case CURLE_WEIRD_SERVER_REPLY, CURLE_WRITE_ERROR, CURLE_FILESIZE_EXCEEDED: self = .badResponse
    case CURLE_UNSUPPORTED_PROTOCOL: self = mayHaveLeft ? .badResponse : .local  // HTTP/0.9; or not http, https
    case CURLE_ABORTED_BY_CALLBACK: self = .cancelled
    default: self = mayHaveLeft ? .badResponse : .local
    }
  }
}

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
