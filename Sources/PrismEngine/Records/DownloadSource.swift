public import PrismBase

/// Fetches answers that may be too large for memory: tables of records that come down. The edge implements it; tests script
/// it.
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
