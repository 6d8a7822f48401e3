import CMicroHTTPD
public import PrismBase
import Synchronization

/// An answer: status, headers and body.
public struct HTTPResponse: Sendable {
  /// The status code.
  public var status: Int
  /// `Content-Length`, `Date` and `Connection` are the server's own. A header that is not one line is left out.
  public var headers: [(name: String, value: String)]
  /// The body; its length is sent as `Content-Length`.
  public var body: [UInt8]
  /// Sent instead of `body`.
  public var stream: HTTPStream?

  public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  public init(status: Int, contentType: String, headers: [(name: String, value: String)] = [], text: String) {
    self.init(status: status, headers: headers + [("Content-Type", contentType)], body: Array(text.utf8))
  }

  /// The words of HTTP for a status (RFC 9110, section 15).
  public static func reason(_ status: Int) -> String { String(cString: MHD_get_reason_phrase_for(UInt32(status))) }

  /// A refusal in one line of plain text.
  public static func refusal(
    _ status: Int, _ message: String, headers: [(name: String, value: String)] = []
  ) -> HTTPResponse {
    HTTPResponse(status: status, contentType: "text/plain; charset=utf-8", headers: headers, text: message + "\n")
  }
}

/// A body that is made while it is sent: of any size in the memory of a piece.
public struct HTTPStream: Sendable {
  /// Bytes of the whole body: its `Content-Length`.
  public var byteCount: Int
  /// Fills the buffer, in the order of the body. It is called on the server's thread, so it must not wait for a peer.
  /// - Returns: the bytes that were written, at least 1; nil: the body can't be made, and the connection is closed.
  public var read: @Sendable (UnsafeMutableRawBufferPointer) -> Int?

  /// All bytes of a source, from its begin; `holding` lives as long as the body is sent.
  public init(_ source: any PieceSource & Sendable, holding: (any AnyObject & Sendable)? = nil) {
    let position = Mutex(0)
    self.init(byteCount: source.byteCount) { buffer in
      withExtendedLifetime(holding) {
        position.withLock { position in
          guard let count = try? source.read(at: position, into: buffer), count > 0 else { return nil }
          position += count
          return count
        }
      }
    }
  }

  public init(byteCount: Int, read: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Int?) {
    (self.byteCount, self.read) = (byteCount, read)
  }
}
