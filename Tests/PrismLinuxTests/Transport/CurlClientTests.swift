import PrismCurl
import PrismProtocol
import Testing

@Suite("The client that waits, of the collector's outputs and of prismctl", .timeLimit(.minutes(2)))
struct CurlClientTests {
  private static func request(_ url: String) -> TransferRequest {
    TransferRequest(url: url, headers: [("X-Name", "value")], body: Array("body".utf8), timeout: .seconds(20))
  }

  @Test("an answer has its type without parameters, and the next request goes over the same connection")
  func answers() throws {
    let server = ScriptedServer { client in
      while client.readRequest() != nil {
        client.send("HTTP/1.1 201 X\r\nContent-Type: Text/HTML; charset=x\r\nContent-Length: 2\r\n\r\nok")
      }
    }
    let client = CurlClient()
    for _ in 0..<3 {
      let answer = try client.perform(Self.request(server.url))
      #expect(answer.status == 201 && answer.mediaType == "text/html" && answer.body == Array("ok".utf8))
    }
    #expect(server.connections == 1)
  }

  @Test("an answer without end is given up, also if its beginning is all that is kept", arguments: [false, true])
  func endless(takesHead: Bool) throws {
    let server = ScriptedServer { client in
      _ = client.readRequest()
      client.send("HTTP/1.1 200 X\r\n\r\n")
      while client.send(String(repeating: "x", count: 65_536)) {}
    }
    var request = Self.request(server.url)
    request.takesHead = takesHead
    let answer = Result { try CurlClient().perform(request) }
    switch answer {
    case .success(let answer): #expect(takesHead && answer.status == 200)
    case .failure(let error): #expect(!takesHead && "\(error)" == "\(server.url): over 1048576 bytes of body")
    }
  }

  @Test("a header with a line end, and an address that curl can't read, are faults before anything is sent")
  func faults() {
    let server = ScriptedServer { _ = $0.readRequest() }
    var request = Self.request(server.url)
    request.headers.append(("X-Name", "a\r\nAuthorization: b"))
    #expect(throws: TransferError.self) { try CurlClient().perform(request) }
    #expect(throws: TransferError.self) { try CurlClient().perform(Self.request("gopher://127.0.0.1")) }
    #expect(server.connections == 0)
  }
}
