public import PrismConfig
import PrismProtocol

// What the engine needs from outside. The edge (`PrismLinux`) implements it; tests script it.

/// Delivers one packet over HTTP.
public protocol Transport: Sendable {
  /// POSTs and reports what came of it. It never throws, so that no caller can forget a case; cancelling the task aborts
  /// the transfer and answers `failure(.cancelled)`. Redirects are not followed; TLS is verified.
  func post(_ request: UploadRequest) async -> UploadAnswer
}

public struct UploadRequest: Sendable {
  public enum Method: Sendable {
    case post
    /// Without a body, for an answer without one: whether anybody is there.
    case head
  }

  public var method = Method.post
  public var url: String
  public var headers: [(name: String, value: String)]
  public var body: [UInt8]
  public var tls = NamespaceConfiguration.TLS()
  public var connectTimeout: Duration
  /// The whole POST, connecting included.
  public var timeout: Duration
  /// On a connection that carried no request before: its answer can be to this request only.
  public var needsNewConnection = false

  public init(
    url: String, headers: [(name: String, value: String)], body: [UInt8], connectTimeout: Duration = .seconds(10),
    timeout: Duration
  ) {
    (self.url, self.headers, self.body) = (url, headers, body)
    (self.connectTimeout, self.timeout) = (connectTimeout, timeout)
  }
}

public struct UploadAnswer: Sendable, Equatable {
  public enum Outcome: Sendable, Equatable {
    /// A whole answer came. Header names are in lower case; the body is cut at 64 KiB.
    case response(status: Int, headers: [String: String], body: [UInt8])
    /// No whole answer came.
    case failure(Failure, detail: String)
  }

  /// Why no answer came; the raw value is a metric's label.
  public enum Failure: String, Sendable, CaseIterable {
    case resolve, connect, tls, timeout, reset, badResponse, cancelled, local
  }

  /// How surely an answer is one to this request. A server, or a proxy on the way, may write to a connection that it
  /// keeps open; the next request then reads what was not meant for it (RFC 9112, 9.2).
  public enum Origin: Sendable, Equatable, CaseIterable {
    /// The connection carried no request before.
    case newConnection
    /// The connection carried others before.
    case keptConnection
    /// As `keptConnection`, and the answer began before the request was sent whole.
    case beforeRequestEnd
  }

  public var outcome: Outcome
  public var origin = Origin.newConnection
  /// A byte of the request may have reached the other side: the packet is frozen.
  public var mayHaveLeft: Bool
  /// On the wire as HTTP sees it: request and answer, headers included.
  public var bytesSent: Int, bytesReceived: Int
  public var duration: Duration

  public init(outcome: Outcome, mayHaveLeft: Bool, bytesSent: Int, bytesReceived: Int, duration: Duration) {
    (self.outcome, self.mayHaveLeft, self.duration) = (outcome, mayHaveLeft, duration)
    (self.bytesSent, self.bytesReceived) = (bytesSent, bytesReceived)
  }
}

/// Fetches a document over HTTP: remote configuration.
public protocol DocumentSource: Sendable {
  /// GETs and reports what came of it; the contract is that of `Transport.post`. A body over `bodyBytesMax` ends the
  /// transfer, with `failure(.badResponse)`.
  func get(_ request: DocumentRequest) async -> UploadAnswer.Outcome
}

public struct DocumentRequest: Sendable {
  public var url: String
  public var headers: [(name: String, value: String)]
  public var tls = NamespaceConfiguration.TLS()
  public var connectTimeout: Duration = .seconds(10)
  /// The whole GET, connecting included.
  public var timeout: Duration
  public var bodyBytesMax: Int

  public init(url: String, headers: [(name: String, value: String)], timeout: Duration, bodyBytesMax: Int) {
    (self.url, self.headers, self.timeout, self.bodyBytesMax) = (url, headers, timeout, bodyBytesMax)
  }
}

/// Keeps one file over restarts: the cached remote configuration.
public protocol RemoteCache: Sendable {
  /// nil: there is none.
  func read(bytesMax: Int) async throws(RemoteCacheFault) -> [UInt8]?
  /// Whole or not at all, through a power loss too.
  func write(_ bytes: [UInt8]) async throws(RemoteCacheFault)
  /// Moves what can't be used out of the way. - Returns: where to.
  func setAside() async throws(RemoteCacheFault) -> String
}

public struct RemoteCacheFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// What is wrong with which file.
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// What the way out is, as the kernel's routes and the configuration's globs say.
public struct NetworkState: Sendable, Equatable {
  public enum Kind: String, Sendable, CaseIterable { case none, metered, unmetered }
  public var kind: Kind
  /// Of the default route; nil without one.
  public var interface: String?
  /// For people: "eth0 carries the default route; Ethernet counts as unmetered".
  public var reason: String

  public init(kind: Kind, interface: String?, reason: String) {
    (self.kind, self.interface, self.reason) = (kind, interface, reason)
  }
}

/// Tells of the network; changes are pushed by the kernel, never polled.
public protocol NetworkMonitor: Sendable {
  var current: NetworkState { get }
  /// Every change from now on, the newest only where the reader is behind.
  func changes() -> AsyncStream<NetworkState>
}

/// Takes admitted reports to their commit: what the ingest socket hands its batches to.
public protocol ReportSink: Sendable {
  /// One commit for all of `batches`, as `durability` says. Never throws: a failure is the outcome that every report of it
  /// is answered with.
  ///
  /// - Parameter whenDone: called once, where the commit was made, after this has returned. Not `async`: a client that
  ///   waits for its answer would wait for two more threads to wake up.
  func append(_ batches: [ReportBatch], whenDone: @escaping @Sendable (CommitOutcome) -> Void)
}

/// Random numbers, passed in so that a test can replay them.
public struct Randomness: RandomNumberGenerator, Sendable {
  private let draw: @Sendable () -> UInt64
  public init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }
  public func next() -> UInt64 { draw() }

  /// The system's own.
  public static let system = Randomness {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}
