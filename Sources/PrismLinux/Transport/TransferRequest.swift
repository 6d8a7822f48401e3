import PrismConfig
import PrismEngine

/// What curl is to do: a POST of a packet, or a GET of a document.
struct TransferRequest: Sendable {
  let url: String
  let headers: [(name: String, value: String)]
  /// nil: a GET.
  let body: [UInt8]?
  let tls: NamespaceConfiguration.TLS
  let connectTimeout: Duration, timeout: Duration
  /// What is kept of the answer's body, and where the transfer is aborted.
  let answerBytesKept: Int, answerBytesMax: Int

  init(_ request: UploadRequest) {
    (url, headers, body, tls) = (request.url, request.headers, request.body, request.tls)
    (connectTimeout, timeout) = (request.connectTimeout, request.timeout)
    (answerBytesKept, answerBytesMax) = (64 * 1024, 1024 * 1024)
  }

  init(_ request: DocumentRequest) {
    (url, headers, body, tls) = (request.url, request.headers, nil, request.tls)
    (connectTimeout, timeout) = (request.connectTimeout, request.timeout)
    (answerBytesKept, answerBytesMax) = (request.bodyBytesMax, request.bodyBytesMax)
  }
}
