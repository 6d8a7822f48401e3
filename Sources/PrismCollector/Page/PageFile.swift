import PrismHTTP
import PrismPacket

/// A file of the page: markup, style sheet or script, as it is in the program (`scripts/embed-page`).
struct PageFile: Sendable {
  let path: String
  let contentType: String
  let text: StaticString

  var bytes: [UInt8] { text.withUTF8Buffer { [UInt8]($0) } }

  /// The tag of each file, and the file smaller, for browsers that take it; nil where the library fails.
  private static let made: [String: (tag: String, gzip: [UInt8]?)] = Dictionary(
    uniqueKeysWithValues: PageFiles.all.map {
      ($0.path, ("\"\(((try? Checksum.sha256($0.bytes)) ?? "").prefix(16))\"", try? Gzip.member(of: $0.bytes)))
    })

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

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    let (tag, gzip) = Self.made[path] ?? ("", nil)
    let headers = Self.headers + [("Content-Type", contentType), ("ETag", tag)]
    if request.header("if-none-match") == tag { return HTTPResponse(status: 304, headers: headers) }
    guard let gzip, request.header("accept-encoding")?.contains("gzip") == true else {
      return HTTPResponse(status: 200, headers: headers, body: bytes)
    }
    return HTTPResponse(status: 200, headers: headers + [("Content-Encoding", "gzip")], body: gzip)
  }
}
