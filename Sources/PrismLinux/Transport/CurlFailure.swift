import CCurl
import PrismEngine

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
