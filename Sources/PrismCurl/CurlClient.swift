import CCurl
public import PrismProtocol

/// Performs one request after the other on the caller's thread, which waits, by the rules of `CurlTransport`. It keeps its
/// connections.
public final class CurlClient {
  /// An answer that came.
  public struct Answer: Sendable, Equatable {
    /// Of the status line.
    public var status: Int
    /// Names in lower case.
    public var headers: [String: String]
    /// Cut at `answerBytesKept`.
    public var body: [UInt8]

    public init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
      (self.status, self.headers, self.body) = (status, headers, body)
    }

    /// In lower case, without parameters; empty: the answer has no type.
    public var mediaType: String { headers["content-type", default: ""].prefix { $0 != ";" && $0 != " " }.lowercased() }
  }

  private let handle: UnsafeMutableRawPointer?

  /// Connects with the first request.
  public init() { handle = CurlLoop.isLibraryReady ? curl_easy_init() : nil }

  deinit { curl_easy_cleanup(handle) }

  /// - Throws: the address, and why there is no answer.
  public func perform(_ request: TransferRequest) throws(TransferError) -> Answer {
    guard let handle else { throw TransferError("libcurl cannot start: no memory") }
    // The options have addresses of the transfer, which ends here.
    defer { curl_easy_reset(handle) }
    let transfer = CurlTransfer(.init(id: TransferMailbox.newID(), request: request) { _ in }, handle: handle)
    try transfer.prepare(stallTimeout: request.timeout, connectionLifetime: CurlTransport.connectionLifetime)
    switch transfer.answer(curl_easy_perform(handle)).outcome {
    case .response(let status, let headers, let body): return Answer(status: status, headers: headers, body: body)
    case .failure(_, let detail): throw TransferError("\(request.origin): \(detail)")
    }
  }
}
