import Foundation
import PrismHTTP
import PrismTestSupport
import Testing

/// Requests that a proxy in front may read differently, over real sockets.
@Suite("The framing of requests", .timeLimit(.minutes(2)))
struct HTTPFramingTests {
  private static func answer(to request: String) async throws -> String {
    var options = HTTPServerOptions()
    (options.headTimeout, options.bodyTimeout, options.listParameters) = (.seconds(3), .seconds(3), ["meta"])
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0"), options: options) {
      .refusal(200, "\($0.path) \($0.query.map { $0.name + "=" + $0.value }) \($0.body.count)(end)")
    }
    let client = try #require(RawClient(port: server.port))
    client.send(request)
    let answer = await client.receive { $0.contains("(end)") || $0.components(separatedBy: "HTTP/1.1 ").count > 2 }
    await server.stop()
    return answer
  }

  private static let post = "POST / HTTP/1.1\r\nHost: h\r\n"
  private static let next = "GET /next HTTP/1.1\r\nHost: h\r\n\r\n"

  @Test(
    "what two servers may read differently is 400, and what follows on the connection is not read",
    arguments: [
      post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
      post + "Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello",
      post + "Content-Length: 5, 5\r\n\r\nhello", post + "Content-Length: +5\r\n\r\nhello",
      post + "Content-Length: 0x5\r\n\r\nhello", post + "Content-Length: 1 0\r\n\r\nhello",
      post + "Content-Length: -1\r\n\r\n",
      post + "Content-Length: \r\n\r\n",
      post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: \u{B}chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", post + "Transfer-Encoding: identity\r\n\r\n",
      "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post + "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello",
      post + "X: a\r\n\tb\r\n\r\n", "GET / HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n",
      "GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\r\nHost: h\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\n",
      "GET / HTTP/1.1\rHost: h\r\r", "GET / HTTP/1.1\r\nHost: h\r\nA: b\rC: d\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nA: \0b\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA: b\0\0C: d\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nA: b\0\0C\0d\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA\0: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n: c\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nfoo\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\u{7F}\r\n\r\n",
      "GET /a\0b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a%00b HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /?a=b%00c HTTP/1.1\r\nHost: h\r\n\r\n", "GET /?a=b\0c HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /?a%00=b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /\u{1} HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET\0 / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
      "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / http/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\t\r\nHost: h\r\n\r\n", "GET /\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
    ])
  func framingTwice(request: String) async throws {
    let answer = try await Self.answer(to: request + Self.next)
    #expect(answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.1 505") || answer.isEmpty, "\(answer)")
    #expect(!answer.contains("/next") && !answer.contains("200"), "\(answer)")
  }

  @Test(
    "two lengths of a body, and a NUL, are answered with 400 that closes the connection",
    arguments: [
      post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
      post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "GET /a%00 HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nA: \0\r\n\r\n",
    ])
  func lengthTwice(request: String) async throws {
    let answer = try await Self.answer(to: request)
    #expect(answer.hasPrefix("HTTP/1.1 400") && answer.contains("Connection: close"), "\(answer)")
  }

  @Test(
    "a sound request is answered",
    arguments: [
      ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "/ [] 0(end)"), ("GET / HTTP/1.0\r\n\r\n", "/ [] 0(end)"),
      (
        "\r\nGET /a%20b?c=%26&d HTTP/1.1\r\nHost:\t h\r\nA:\r\nCookie: a=b; c=d\r\n\r\n",
        "/a b [\"c=&\", \"d=\"] 0(end)"
      ),
      (post + "Content-Length:5\r\n\r\nhello", "/ [] 5(end)"),
      (post + "Content-Length: 5\r\nX: ä\r\n\r\nhello", "/ [] 5(end)"),
      (post + "transfer-encoding:\tChunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "/ [] 5(end)"),
      ("GET /?meta=a&meta=b HTTP/1.1\r\nHost: h\r\n\r\n", "[\"meta=a\", \"meta=b\"] 0(end)"),
    ])
  func sound(request: String, expected: String) async throws {
    let answer = try await Self.answer(to: request)
    #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains(expected), "\(answer)")
  }

  @Test("a parameter that is there twice is 400, and the connection goes on") func parameterTwice() async throws {
    let answer = try await Self.answer(to: "GET /?a=1&a=2 HTTP/1.1\r\nHost: h\r\n\r\n" + Self.next)
    #expect(answer.hasPrefix("HTTP/1.1 400") && answer.contains("`a` is there twice"), "\(answer)")
  }
}
