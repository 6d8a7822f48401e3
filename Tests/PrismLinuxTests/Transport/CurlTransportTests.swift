import Glibc
import PrismCurl
import PrismLinux
import PrismProtocol
import Testing

@Suite("The transport over real sockets", .timeLimit(.minutes(2)))
struct CurlTransportTests {
  private func request(_ url: String, body: [UInt8] = Array("packet".utf8)) -> TransferRequest {
    TransferRequest(
      url: url + "/v1/packets",
      headers: [("Content-Type", "application/octet-stream"), ("Authorization", "Bearer secret")], body: body,
      timeout: .seconds(20))
  }

  private func failure(_ answer: PostAnswer) -> PostAnswer.Failure? {
    if case .failure(let failure, _) = answer.outcome { failure } else { nil }
  }

  @Test("a whole answer comes back with its status, lower-case headers and body")
  func wholeAnswer() async throws {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 200 OK\r\nPrism-Receipt: abc\r\nX-Two: 1\r\nx-two: 2\r\nContent-Length: 2\r\n\r\nhi")
    }
    let answer = await CurlTransport().post(request(server.url))
    let headers = ["prism-receipt": "abc", "x-two": "1, 2", "content-length": "2"]
    #expect(answer.outcome == .response(status: 200, headers: headers, body: Array("hi".utf8)))
    #expect(answer.mayHaveLeft)
    let sent = try #require(server.requests.first)
    #expect(sent.hasPrefix("POST /v1/packets HTTP/1.1\r\n") && sent.hasSuffix("\r\n\r\npacket"))
    #expect(!sent.lowercased().contains("expect:"))
    #expect(answer.bytesSent == sent.utf8.count)
    #expect(answer.bytesReceived == 80)
  }

  @Test("a large body goes out whole and is counted whole")
  func largeBody() async throws {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }
    let body = [UInt8](repeating: 0x61, count: 300_000)
    let answer = await CurlTransport().post(request(server.url, body: body))
    let sent = try #require(server.requests.first)
    #expect(sent.hasSuffix(String(repeating: "a", count: 300_000)))
    #expect(answer.bytesSent == sent.utf8.count)
  }

  @Test("a redirect is the answer; nothing goes to where it points", arguments: [301, 302, 303, 307, 308])
  func redirect(status: Int) async {
    let target = ScriptedServer { $0.readRequest() }
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 \(status) Elsewhere\r\nLocation: \(target.url)/\r\nContent-Length: 0\r\n\r\n")
    }
    let answer = await CurlTransport().post(request(server.url))
    guard case .response(let got, _, _) = answer.outcome else {
      Issue.record("no answer: \(answer)")
      return
    }
    #expect(got == status)
    #expect(target.connections == 0)
  }

  @Test("interim answers are skipped")
  func interim() async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }
    let answer = await CurlTransport().post(request(server.url))
    #expect(answer.outcome == .response(status: 200, headers: ["content-length": "0"], body: []))
  }

  @Test(
    "a connection that breaks is a reset, and the packet may have left",
    arguments: ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"])
  func broken(answer text: String) async {
    for byReset in [false, true] {
      let server = ScriptedServer {
        $0.readRequest()
        $0.send(text)
        if byReset { $0.reset() }
      }
      let answer = await CurlTransport().post(request(server.url))
      #expect(failure(answer) == .reset, "\(answer)")
      #expect(answer.mayHaveLeft)
    }
  }

  @Test("an answer without end is given up", arguments: ["headers", "line", "interim", "body", "declared"])
  func endless(_ what: String) async {
    let server = ScriptedServer { client in
      client.readRequest()
      let pieces = [
        "headers": ("HTTP/1.1 200 OK\r\n", "X-More: \(String(repeating: "y", count: 500))\r\n"),
        "line": ("HTTP/1.1 200 OK\r\nX-Long: ", String(repeating: "y", count: 4000)),
        "interim": ("", "HTTP/1.1 102 Wait\r\n\r\n"),
        "body": ("HTTP/1.1 200 OK\r\n\r\n", String(repeating: "y", count: 16_000)),
        "declared": ("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "y"),
      ]
      guard let (head, piece) = pieces[what] else { return }
      client.send(head)
      while client.send(piece) {}
    }
    let answer = await CurlTransport().post(request(server.url))
    #expect(failure(answer) == .badResponse, "\(answer)")
    #expect(answer.mayHaveLeft)
    #expect(answer.bytesReceived < 4 * 1024 * 1024)
  }

  @Test("what is kept of a body is bounded")
  func longBody() async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 500 Oops\r\nContent-Length: 200000\r\n\r\n" + String(repeating: "z", count: 200_000))
    }
    let answer = await CurlTransport().post(request(server.url))
    guard case .response(500, _, let body) = answer.outcome else {
      Issue.record("\(answer)")
      return
    }
    #expect(body.count == 64 * 1024)
  }

  @Test("what is not HTTP is a bad answer", arguments: ["SSH-2.0-OpenSSH_9\r\n", "HTTP/1.1 abc\r\n\r\n"])
  func notHTTP(text: String) async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.send(text)
    }
    #expect(failure(await CurlTransport().post(request(server.url))) == .badResponse)
  }

  @Test("a collector that goes silent costs the timeout, no more")
  func silent() async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.waitForClose()
    }
    var slow = request(server.url)
    slow.timeout = .milliseconds(200)
    let answer = await CurlTransport().post(slow)
    #expect(failure(answer) == .timeout)
    #expect(answer.mayHaveLeft)
  }

  @Test("a stall ends a transfer long before a long timeout does")
  func stalled() async {
    let server = ScriptedServer {
      $0.readRequest()
      $0.waitForClose()
    }
    var patient = request(server.url)
    patient.timeout = .seconds(3600)
    let answer = await CurlTransport(stallTimeout: .seconds(1)).post(patient)
    #expect(failure(answer) == .timeout)
  }

  @Test("where no connection was made, nothing can have left")
  func nothingLeft() async {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    let deafPort = ScriptedServer.bindToLoopback(descriptor)  // bound and not listening: nobody else can get it
    let refused = await CurlTransport().post(request("http://127.0.0.1:\(deafPort)"))
    #expect(failure(refused) == .connect)
    #expect(!refused.mayHaveLeft && refused.bytesSent == 0)
    let unknown = await CurlTransport().post(request("http://collector.invalid"))
    #expect(failure(unknown) == .resolve)
    #expect(!unknown.mayHaveLeft)
  }

  @Test(
    "what cannot be sent is said, and nothing leaves", arguments: ["ftp://127.0.0.1", "file:///etc/passwd", "http://"])
  func unusable(url: String) async {
    let answer = await CurlTransport().post(TransferRequest(url: url, headers: [], body: [], timeout: .seconds(5)))
    #expect(failure(answer) == .local, "\(answer)")
    #expect(!answer.mayHaveLeft)
  }

  @Test("a line end in a header is refused")
  func headerInjection() async {
    let server = ScriptedServer { $0.readRequest() }
    var smuggled = request(server.url)
    smuggled.headers.append(("X-A", "1\r\nX-B: 2"))
    let answer = await CurlTransport().post(smuggled)
    #expect(failure(answer) == .local)
    #expect(server.connections == 0)
  }

  @Test("cancelling aborts the transfer, before it begins as well as within")
  func cancelling() async throws {
    let server = ScriptedServer {
      $0.readRequest()
      $0.waitForClose()
    }
    let transport = CurlTransport()
    let request = request(server.url)
    let within = Task { await transport.post(request) }
    try await eventually("the request arrives") { server.requests.count == 1 }
    within.cancel()
    let answer = await within.value
    #expect(failure(answer) == .cancelled)
    #expect(answer.mayHaveLeft)
    let before = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await transport.post(request)
    }
    let unsent = await before.value
    #expect(failure(unsent) == .cancelled)
    #expect(server.requests.count == 1)
  }

  @Test("a slow collector holds up no other")
  func sideBySide() async throws {
    let silent = ScriptedServer {
      $0.readRequest()
      $0.waitForClose()
    }
    let quick = ScriptedServer {
      $0.readRequest()
      $0.send("HTTP/1.1 204 No Content\r\n\r\n")
    }
    let transport = CurlTransport()
    let (slowRequest, quickRequest) = (request(silent.url), request(quick.url))
    let waiting = Task { await transport.post(slowRequest) }
    try await eventually("the silent one has its request") { silent.requests.count == 1 }
    for _ in 0..<20 {
      #expect(await transport.post(quickRequest).outcome == .response(status: 204, headers: [:], body: []))
    }
    waiting.cancel()
    _ = await waiting.value
  }

  @Test("a connection is kept for the next packet; one that was closed meanwhile is replaced")
  func reuse() async {
    let server = ScriptedServer { client in
      let answersOfThisConnection = client.number == 1 ? 3 : 100
      for _ in 0..<answersOfThisConnection {
        guard client.readRequest() != nil else { return }
        client.send("HTTP/1.1 204 No Content\r\n\r\n")
      }
    }
    let transport = CurlTransport()
    for _ in 0..<6 {
      #expect(await transport.post(request(server.url)).outcome == .response(status: 204, headers: [:], body: []))
    }
    #expect(server.connections == 2)
  }

  @Test("on a new connection, head and body are written together; the kernel's round trip comes with the answer")
  func written() async throws {
    let server = ScriptedServer { [noContent] client in
      guard client.readRequest() != nil else { return }
      client.record("segments: \(client.dataSegments)")
      client.send(noContent)
      client.waitForClose()
    }
    let answer = await CurlTransport().post(request(server.url))
    #expect(server.requests.last == "segments: 1")
    let line = try #require(answer.line)
    #expect(line.roundTrip > .zero && line.least > .zero && line.roundTrip < .seconds(10))
  }

  private let noContent = "HTTP/1.1 204 No Content\r\n\r\n"
  private let stray = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"

  @Test("what lies unread on a kept connection began before the request, however short that is")
  func strayBeforeRequest() async throws {
    let server = ScriptedServer { [noContent, stray] client in
      while client.readRequest() != nil {
        client.send(noContent)
        guard client.number == 1 else { continue }
        usleep(20_000)  // apart: curl itself drops a connection with more than the answer in one read
        client.send(stray)
        client.record("strayed")
      }
    }
    let transport = CurlTransport()
    var request = request(server.url)
    _ = await transport.post(request)
    try await eventually("the stray answer is there") { server.requests.contains("strayed") }
    let answer = await transport.post(request)
    #expect(answer.outcome == .response(status: 400, headers: ["content-length": "0"], body: []))
    #expect(answer.origin == .beforeRequestEnd)
    request.needsNewConnection = true
    #expect(await transport.post(request).outcome == .response(status: 204, headers: [:], body: []))
    #expect(server.connections == 2)
  }

  @Test("an answer on a kept connection says so, and whether it began before the request was whole")
  func origin() async throws {
    let server = ScriptedServer { [noContent, stray] client in
      guard client.readRequest() != nil else { return }
      client.send(noContent)
      guard client.readRequest() != nil else { return }
      client.send(noContent)
      client.readHead()
      client.send(stray)
      client.waitForClose()
    }
    let transport = CurlTransport()
    let small = request(server.url)
    #expect(await transport.post(small).origin == .newConnection)
    #expect(await transport.post(small).origin == .keptConnection)
    // More than the kernel's buffers take: it can't be sent whole before the server reads.
    let large = request(server.url, body: [UInt8](repeating: 0x61, count: 32 << 20))
    let early = await transport.post(large)
    #expect(early.origin == .beforeRequestEnd, "\(early)")
    #expect(await transport.post(small).origin == .newConnection, "the connection of such an answer is not kept")
    #expect(server.connections == 2)
  }

  @Test("a request that needs a new connection gets one, which is kept")
  func newConnection() async {
    let server = ScriptedServer { [noContent] client in while client.readRequest() != nil { client.send(noContent) } }
    let transport = CurlTransport()
    var request = request(server.url)
    for (needsNew, connections) in [(false, 1), (true, 2), (false, 2), (true, 3)] {
      request.needsNewConnection = needsNew
      let answer = await transport.post(request)
      #expect(server.connections == connections)
      if needsNew { #expect(answer.origin == .newConnection) }
    }
  }

  @Test(
    "a connection is not kept after an answer that is no success or has another packet's receipt",
    arguments: [
      ("400 X", "", 2), ("503 X", "", 2), ("200 X", "Prism-Receipt: B\r\n", 2), ("200 X", "Prism-Receipt: A\r\n", 1),
    ])
  func distrust(status: String, header: String, connections: Int) async {
    let server = ScriptedServer { client in
      while client.readRequest() != nil { client.send("HTTP/1.1 \(status)\r\n\(header)Content-Length: 0\r\n\r\n") }
    }
    let transport = CurlTransport()
    var request = request(server.url)
    request.headers.append(("Prism-Packet-Id", "a"))
    for _ in 0..<2 { _ = await transport.post(request) }
    #expect(server.connections == connections)
  }

  @Test(
    "a connection that is never idle ends at its longest life, so that the name of a receiver that moved is resolved again"
  )
  func lifetime() async throws {
    let server = ScriptedServer { [noContent] client in while client.readRequest() != nil { client.send(noContent) } }
    let transport = CurlTransport(connectionLifetime: .seconds(1))
    try await eventually("another connection is opened") {
      _ = await transport.post(request(server.url))
      return server.connections == 2
    }
  }

  @Test("unused connections are closed, and the next packet opens one again")
  func idle() async throws {
    let server = ScriptedServer { client in
      while client.readRequest() != nil { client.send("HTTP/1.1 204 No Content\r\n\r\n") }
      client.record("closed")
    }
    let transport = CurlTransport(idleTimeout: .milliseconds(50))
    for round in 1...3 {
      #expect(await transport.post(request(server.url)).outcome == .response(status: 204, headers: [:], body: []))
      try await eventually("the connection is closed") { server.requests.filter { $0 == "closed" }.count == round }
    }
    #expect(server.connections == 3)
  }

  @Test("many posts at once on one transport all come back")
  func many() async {
    let server = ScriptedServer { client in
      while client.readRequest() != nil { client.send("HTTP/1.1 204 No Content\r\n\r\n") }
    }
    let transport = CurlTransport(idleTimeout: .milliseconds(1))
    let request = request(server.url)
    let answered = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          let post = Task { await transport.post(request) }
          if number.isMultiple(of: 5) { post.cancel() }
          if case .response(204, _, _) = await post.value.outcome { return true }
          return number.isMultiple(of: 5)
        }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(answered == 200)
  }
}
