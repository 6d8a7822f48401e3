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

  /// A refusal in one line of plain text.
  public static func refusal(
    _ status: Int, _ message: String, headers: [(name: String, value: String)] = []
  ) -> HTTPResponse {
    HTTPResponse(status: status, contentType: "text/plain; charset=utf-8", headers: headers, text: message + "\n")
  }
}
