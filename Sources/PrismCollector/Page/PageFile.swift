import PrismHTTP
import PrismPacket

/// A file of the page: markup, style sheet or script, as it is in the program (`scripts/embed-page`).
struct PageFile: Sendable {
  let path: String
  let contentType: String
  let bytes: [UInt8]
  /// Smaller, for browsers that take it; nil where the library fails.
  private let gzip: [UInt8]?
  private let tag: String

  init(path: String, contentType: String, text: StaticString) {
    (self.path, self.contentType) = (path, contentType)
    let bytes = text.withUTF8Buffer { [UInt8]($0) }
    self.bytes = bytes
    gzip = try? Gzip.member(of: bytes)
    tag = "\"\(((try? Checksum.sha256(bytes)) ?? "").prefix(16))\""
  }

  private static let files: [String: PageFile] = Dictionary(
    uniqueKeysWithValues: PageFiles.all.map { ($0.path, $0) })

  /// - Returns: nil: the page has no such file. Its views are one file, whose script reads the rest of the address.
  static func named(_ path: String) -> PageFile? { files[path] }

  /// Nothing but what this collector serves is loaded, run, framed or sent to.
  private static let headers: [(name: String, value: String)] = [
    (
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action "
        + "'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"), ("Cache-Control", "no-cache"),
    ("Vary", "Accept-Encoding"),
  ]

  /// - Throws: 405 for anything but GET.
  func answer(_ request: HTTPRequest) throws(CollectorRefusal) -> HTTPResponse {
    guard request.method == .get else { throw .notAllowed(request.method, but: [.get]) }
    let headers = Self.headers + [("Content-Type", contentType), ("ETag", tag)]
    if request.header("if-none-match") == tag { return HTTPResponse(status: 304, headers: headers) }
    guard let gzip, request.header("accept-encoding")?.contains("gzip") == true else {
      return HTTPResponse(status: 200, headers: headers, body: bytes)
    }
    return HTTPResponse(status: 200, headers: headers + [("Content-Encoding", "gzip")], body: gzip)
  }
}
