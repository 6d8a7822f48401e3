import PrismEngine

/// What curl is to do: a POST of a packet, or a GET of a document.
struct TransferRequest: Sendable {
  let url: String
  let headers: [(name: String, value: String)]
  /// nil: a GET.
  let body: [UInt8]?
  let caFile: String?, certFile: String?, keyFile: String?
  let connectTimeout: Duration, timeout: Duration
  /// What is kept of the answer's body, and where the transfer is aborted.
  let answerBytesKept: Int, answerBytesMax: Int

  init(_ request: UploadRequest) {
    (url, headers, body) = (request.url, request.headers, request.body)
    (caFile, certFile, keyFile) = (request.caFile, request.certFile, request.keyFile)
    (connectTimeout, timeout) = (request.connectTimeout, request.timeout)
    (answerBytesKept, answerBytesMax) = (64 * 1024, 1024 * 1024)
  }

  init(_ request: DocumentRequest) {
    (url, headers, body) = (request.url, request.headers, nil)
    (caFile, certFile, keyFile) = (request.caFile, request.certFile, request.keyFile)
    (connectTimeout, timeout) = (request.connectTimeout, request.timeout)
    (answerBytesKept, answerBytesMax) = (request.bodyBytesMax, request.bodyBytesMax)
  }
}
