import PrismCurl
import PrismLinux
import PrismProtocol
import Testing

@Suite("A document that is fetched over real sockets", .timeLimit(.minutes(2)))
struct DocumentSourceTests {
  private static let bytesMax = 200_000

  private func get(_ server: ScriptedServer, timeout: Duration = .seconds(20)) async -> PostAnswer.Outcome {
    await CurlTransport().post(
      TransferRequest(
        get: server.url + "/config?a=b", headers: [("X-Test", "1")], timeout: timeout, answerBytesMax: Self.bytesMax)
    ).outcome
  }

  private func failure(_ outcome: PostAnswer.Outcome) -> PostAnswer.Failure? {
    if case .failure(let failure, _) = outcome { failure } else { nil }
  }

  @Test("comes whole, up to the byte that is allowed")
  func whole() async throws {
    let body = String(repeating: "x", count: Self.bytesMax)
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body)
    }
    guard case .response(200, _, let got) = await get(server) else { throw Unexpected() }
    #expect(got == Array(body.utf8))
    let sent = try #require(server.requests.first)
    #expect(sent.hasPrefix("GET /config?a=b HTTP/1.1\r\n") && sent.contains("X-Test: 1\r\n"))
    #expect(sent.hasSuffix("\r\n\r\n") && !sent.lowercased().contains("content-length"))
  }

  @Test(
    "is refused when it is larger, whether it says so or just goes on",
    arguments: ["Content-Length: 200001\r\n", "Connection: close\r\n", "Content-Length: 99999999999999999999\r\n"])
  func tooLarge(header: String) async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 200 OK\r\n\(header)\r\n")
      let chunk = String(repeating: "x", count: 10_000)
      while $0.send(chunk) {}
    }
    #expect(failure(await get(server)) == .badResponse)
  }

  @Test("is given up when it drips past its deadline")
  func drip() async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
      $0.send("x")
      $0.waitForClose()
    }
    #expect(failure(await get(server, timeout: .milliseconds(300))) == .timeout)
  }

  @Test("with headers without end is a bad response")
  func headers() async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 200 OK\r\n")
      while $0.send("X-More: \(String(repeating: "y", count: 1000))\r\n") {}
    }
    #expect(failure(await get(server)) == .badResponse)
  }

  @Test("is not looked for where a redirect points")
  func redirect() async throws {
    let target = ScriptedServer { $0.readRequest() }
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 302 Found\r\nLocation: \(target.url)/\r\nContent-Length: 0\r\n\r\n")
    }
    guard case .response(302, _, _) = await get(server) else { throw Unexpected() }
    #expect(target.connections == 0)
  }

  private struct Unexpected: Error {}
}
