import PrismBase
import PrismConfig
import PrismEngine

/// The order to curl: a POST of a packet, or a GET of a document or of a table of records.
struct TransferRequest: Sendable {
  let url: String
  let headers: [(name: String, value: String)]
  /// Neither a body goes nor one comes.
  let isHead: Bool
  /// nil: a GET.
  let body: [UInt8]?
  let tls: NamespaceConfiguration.TLS
  let connectTimeout: Duration, timeout: Duration
  var needsNewConnection = false
  /// The bytes of the answer's body that are kept, and the size at which the transfer is aborted.
  let answerBytesKept: Int, answerBytesMax: Int
  /// Gets the body of an answer with status 200; nil: it is kept in memory.
  var file: DownloadFile?

  init(_ request: PostRequest) {
    (url, headers, isHead) = (request.url, request.headers, request.method == .head)
    body = request.method == .get ? nil : request.body
    (tls, needsNewConnection) = (request.tls, request.needsNewConnection)
    (connectTimeout, timeout) = (request.connectTimeout, request.timeout)
    (answerBytesKept, answerBytesMax) = (request.answerBytesKept, 1024 * 1024)
  }

  init(_ request: DocumentRequest) {
    (url, headers, body, isHead, tls) = (request.url, request.headers, nil, false, request.tls)
    (connectTimeout, timeout) = (request.connectTimeout, request.timeout)
    (answerBytesKept, answerBytesMax) = (request.bodyBytesMax, request.bodyBytesMax)
  }

  /// - Parameter file: of its own.
  init(_ request: DownloadRequest, into file: DownloadFile) {
    (url, headers, body, isHead, tls) = (request.url, request.headers, nil, false, request.tls)
    (connectTimeout, timeout, self.file) = (.seconds(10), request.timeout, file)
    (answerBytesKept, answerBytesMax) = (64 * 1024, request.bodyBytesMax)
  }
}
