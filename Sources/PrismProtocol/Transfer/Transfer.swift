public import PrismBase

// Requests over HTTP and their answers, as values. `PrismCurl` performs them; tests script them.

/// Delivers one request over HTTP.
public protocol Transport: Sendable {
  /// Reports the end of a request. It never throws, so that no caller can forget a case; cancelling the task aborts the
  /// transfer and answers `failure(.cancelled)`. Redirects are not followed; TLS is verified.
  func post(_ request: TransferRequest) async -> PostAnswer
}

/// A request that carries a packet, a question, a probe, or asks for a document or a table of records.
public struct TransferRequest: Sendable {
  /// The method of the request.
  public enum Method: String, Sendable {
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
    /// Without a body, for an answer with one.
    case get = "GET"
    /// Without a body, for an answer without one: whether anybody is there.
    case head = "HEAD"
  }

  /// POST for a packet, GET for a question, HEAD for a probe.
  public var method = Method.post
  /// The whole address.
  public var url: String
  /// The address without user, path and query, for the log: those of a webhook are its secret.
  public var origin: String {
    let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
    let host = url[start...].prefix { !"/?#".contains($0) }
    return String(url[..<start] + (host.split(separator: "@", omittingEmptySubsequences: false).last ?? host))
  }
  /// The headers in their order.
  public var headers: [(name: String, value: String)]
  /// The body; empty for a question and a probe.
  public var body: [UInt8]
  /// Certificates for the connection.
  public var tls = TLSFiles()
  /// The deadline for name resolution, connection and TLS.
  public var connectTimeout: Duration
  /// The whole POST, connecting included.
  public var timeout: Duration
  /// The path of the socket that it goes through; nil: over TCP.
  public var unixSocket: String?
  /// A status line is an answer: what comes after it need not end.
  public var takesHead = false
  /// On a connection that carried no request before: its answer can be to this request only.
  public var needsNewConnection = false
  /// Bytes of the answer's body that are kept, where it goes into no file.
  public var answerBytesKept = 64 * 1024
  /// With a larger answer the transfer is aborted (`failure(.badResponse)`), before it is fetched if it says its size.
  public var answerBytesMax = 1024 * 1024

  public init(
    url: String, headers: [(name: String, value: String)], body: [UInt8], connectTimeout: Duration = .seconds(10),
    timeout: Duration
  ) {
    (self.url, self.headers, self.body) = (url, headers, body)
    (self.connectTimeout, self.timeout) = (connectTimeout, timeout)
  }

  /// GETs an answer of up to `answerBytesMax`, all of which is kept.
  public init(get url: String, headers: [(name: String, value: String)], timeout: Duration, answerBytesMax: Int) {
    self.init(url: url, headers: headers, body: [], timeout: timeout)
    (method, answerBytesKept, self.answerBytesMax) = (.get, answerBytesMax, answerBytesMax)
  }
}

/// Files of certificates and keys, checked when they are read.
public struct TLSFiles: Sendable, Equatable {
  /// PEM. Beside `caFile` no other CA counts.
  public var caFile: HeldFile?, certFile: HeldFile?, keyFile: HeldFile?
  public init(caFile: HeldFile? = nil, certFile: HeldFile? = nil, keyFile: HeldFile? = nil) {
    (self.caFile, self.certFile, self.keyFile) = (caFile, certFile, keyFile)
  }
}

/// The result of a request.
public struct PostAnswer: Sendable, Equatable {
  /// The answer, or why there is no answer.
  public enum Outcome: Sendable, Equatable {
    /// A whole answer came. Header names are in lower case; the body is cut at `answerBytesKept`.
    case response(status: Int, headers: [String: String], body: [UInt8])
    /// No whole answer came.
    case failure(Failure, detail: String)
  }

  /// Why no answer came; the raw value is a metric's label.
  public enum Failure: String, Sendable, CaseIterable {
    case resolve, connect, tls, timeout, reset, badResponse, cancelled, local
  }

  /// How surely an answer belongs to this request. A server, or a proxy on the way, may write to a connection that it
  /// keeps open. The next request then reads an answer that was not meant for it (RFC 9112, 9.2).
  public enum Origin: Sendable, Equatable, CaseIterable {
    /// The connection carried no request before.
    case newConnection
    /// The connection carried others before.
    case keptConnection
    /// As `keptConnection`, and the answer began before the request was sent whole.
    case beforeRequestEnd
  }

  /// The answer or the failure.
  public var outcome: Outcome
  /// The kind of connection on which the answer came.
  public var origin = Origin.newConnection
  /// A byte of the request may have reached the other side: the packet is frozen.
  public var mayHaveLeft: Bool
  /// On the wire as HTTP sees it: request and answer, headers included.
  public var bytesSent: Int, bytesReceived: Int
  /// The time from the request to the whole answer.
  public var duration: Duration
  /// The round trip of the connection when the answer came; nil if unknown.
  public var line: LineReading?

  public init(outcome: Outcome, mayHaveLeft: Bool, bytesSent: Int, bytesReceived: Int, duration: Duration) {
    (self.outcome, self.mayHaveLeft, self.duration) = (outcome, mayHaveLeft, duration)
    (self.bytesSent, self.bytesReceived) = (bytesSent, bytesReceived)
  }
}

/// The round trip of a connection, as the kernel measured it: the time on the line and in its queues, without that of the
/// receiver.
public struct LineReading: Sendable, Equatable {
  /// When the answer came; smoothed over the last segments.
  public var roundTrip: Duration
  /// The least in the last 5 minutes.
  public var least: Duration

  public init(roundTrip: Duration, least: Duration) { (self.roundTrip, self.least) = (roundTrip, least) }
}

/// Fetches answers that may be too large for memory: tables of records that come down. Tests script it.
public protocol DownloadSource: Sendable {
  /// GETs into a file without a name, which is gone with its last holder. It never throws, so that no caller can forget a
  /// case; cancelling the task aborts the transfer. Redirects are not followed; TLS is verified.
  func download(_ request: TransferRequest) async -> DownloadAnswer
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
