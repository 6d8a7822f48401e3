public import PrismBase
public import PrismConfig

/// Fetches answers that may be too large for memory: tables of records that come down. The edge implements it; tests script
/// it.
public protocol DownloadSource: Sendable {
  /// GETs into a file without a name, which is gone with its last holder. It never throws, so that no caller can forget a
  /// case; cancelling the task aborts the transfer. Redirects are not followed; TLS is verified.
  func download(_ request: DownloadRequest) async -> DownloadAnswer
}

/// A request for an answer of any size.
public struct DownloadRequest: Sendable {
  /// The whole address, with the query.
  public var url: String
  /// The headers in their order.
  public var headers: [(name: String, value: String)]
  /// Certificates for the connection.
  public var tls = NamespaceConfiguration.TLS()
  /// The whole GET, connecting included. A transfer without a byte for a minute ends sooner.
  public var timeout: Duration
  /// The largest answer; a larger one is a failure, before it is fetched if it says its size.
  public var bodyBytesMax: Int

  public init(url: String, headers: [(name: String, value: String)], timeout: Duration, bodyBytesMax: Int) {
    (self.url, self.headers, self.timeout, self.bodyBytesMax) = (url, headers, timeout, bodyBytesMax)
  }
}

/// The result of a download.
public struct DownloadAnswer: Sendable {
  /// The answer's head, with the first 64 KiB of the body if `body` is nil; or why there is no answer.
  public var outcome: PostAnswer.Outcome
  /// The body of an answer with status 200.
  public var body: (any PieceSource & Sendable)?
  /// On the wire as HTTP sees it: request and answer, headers included.
  public var bytesOnWire: Int

  public init(outcome: PostAnswer.Outcome, body: (any PieceSource & Sendable)?, bytesOnWire: Int) {
    (self.outcome, self.body, self.bytesOnWire) = (outcome, body, bytesOnWire)
  }
}
