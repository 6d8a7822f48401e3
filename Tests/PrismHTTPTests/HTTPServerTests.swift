import PrismBase
import PrismHTTP
import PrismTestSupport
import Synchronization
import Testing

/// Over real sockets. Each answer's body ends with "(end)".
@Suite("The HTTP server", .timeLimit(.minutes(2)))
struct HTTPServerTests {
  private func withServer(
    _ change: (inout HTTPServerOptions) -> Void = { _ in },
    handler: @escaping HTTPServer.Handler = { .refusal(200, "\($0.path) \($0.body.count)(end)") },
    _ body: (HTTPServer) async throws -> Void
  ) async throws {
    var options = HTTPServerOptions()
    change(&options)
    let server = try HTTPServer(
      listener: ListeningSocket(address: "127.0.0.1:0"), options: options, handler: handler)
    do { try await body(server) } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private func client(_ server: HTTPServer) throws -> RawClient { try #require(RawClient(port: server.port)) }

  private static func post(_ path: String, bytes: Int, sent: Int? = nil) -> String {
    "POST \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: \(bytes)\r\n\r\n"
      + String(repeating: "x", count: sent ?? bytes)
  }
  private static func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n" }

  @Test("a connection serves one request after another") func keepAlive() async throws {
    try await withServer { server in
      let client = try client(server)
      for number in 0..<5 {
        client.send(Self.post("/\(number)", bytes: number * 1000))
        let answer = await client.answers(1)
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains("/\(number) \(number * 1000)(end)"))
      }
    }
  }

  @Test(
    "a body is made while it is sent, and one that can't be made whole ends the connection", arguments: [nil, 200_000])
  func streams(failsBehind: Int?) async throws {
    let byteCount = 1_000_000
    try await withServer { _ in
    } handler: { _ in
      let made = Mutex(0)
      var response = HTTPResponse(status: 200)
      response.stream = HTTPStream(byteCount: byteCount) { buffer in
        made.withLock { made in
          if let failsBehind, made >= failsBehind { return nil }
          let count = min(buffer.count, byteCount - made)
          for index in 0..<count {
            buffer[index] = made + index == byteCount - 1 ? UInt8(ascii: "!") : UInt8(ascii: "x")
          }
          made += count
          return count
        }
      }
      return response
    } _: { server in
      let client = try client(server)
      client.send(Self.get("/"))
      let answer = await client.receive { $0.hasSuffix("!") }
      #expect(answer.contains("Content-Length: \(byteCount)"))
      #expect(answer.hasSuffix("x!") == (failsBehind == nil))
      #expect(failsBehind == nil || answer.count < byteCount)
    }
  }

  @Test("requests that come at once are answered in their order") func pipelining() async throws {
    try await withServer { server in
      let client = try client(server)
      client.send((0..<20).map { Self.post("/\($0)", bytes: $0) }.joined())
      let answers = await client.answers(20)
      let order = answers.matches(of: /\/(\d+) (\d+)\(end\)/).map { Int($0.1) }
      #expect(order == Array(0..<20))
    }
  }

  @Test(
    "a body over the limit is 413, announced or in chunks, and the handler never sees it",
    arguments: [
      post("/", bytes: 2001),
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        + String(repeating: "3e8\r\n" + String(repeating: "y", count: 1000) + "\r\n", count: 3) + "0\r\n\r\n",
    ])
  func bodyLimit(request: String) async throws {
    let calls = Mutex(0)
    try await withServer {
      $0.bodyBytesMax = 2000
    } handler: { _ in
      calls.withLock { $0 += 1 }
      return .refusal(200, "(end)")
    } _: { server in
      let client = try client(server)
      client.send(request)
      #expect(await client.receive { $0.contains("\r\n\r\n") }.hasPrefix("HTTP/1.1 413"))
    }
    #expect(calls.withLock { $0 } == 0)
  }

  @Test("a head without end is refused, and held in bounds") func headLimit() async throws {
    try await withServer { server in
      let client = try client(server)
      client.send("GET / HTTP/1.1\r\nHost: h\r\n")
      var sent = 0
      while sent < 64 << 20, client.send("X-\(sent): " + String(repeating: "z", count: 8000) + "\r\n") { sent += 8000 }
      #expect(sent < 64 << 20, "the server reads on and on")
    }
  }

  @Test(
    "what is no request of ours is refused by its status",
    arguments: [
      ("BREW / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 405"),
      ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"),
      ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n", "HTTP/1.1 4"),
      ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 4"),
    ])
  func refused(request: String, status: String) async throws {
    try await withServer { server in
      let client = try client(server)
      client.send(request)
      let answer = await client.receive { $0.contains("\r\n\r\n") }
      #expect(answer.hasPrefix(status), "\(answer)")
    }
  }

  @Test(
    "a client that is slow with its head or body is ended, others are served meanwhile",
    arguments: [
      "GET / HT", "", post("/", bytes: 100, sent: 10),
    ])
  func slow(beginning: String) async throws {
    try await withServer {
      ($0.headTimeout, $0.bodyTimeout) = (.milliseconds(300), .milliseconds(300))
    } _: { server in
      let slow = try client(server)
      slow.send(beginning)
      let other = try client(server)
      other.send(Self.get("/other"))
      #expect(await other.answers(1).contains("/other 0(end)"))
      #expect(!(await slow.receive()).contains("200"), "and this returns at all")
    }
  }

  @Test("a large body has the time that a slow link needs") func largeBody() async throws {
    let time = ManualTime()
    let begun = time.uptime
    var options = HTTPServerOptions()
    options.stopTimeout = .milliseconds(40)  // the deadlines are looked at four times in it
    let (heads, head) = AsyncStream.makeStream(of: Void.self)
    let server = try HTTPServer(
      listener: ListeningSocket(address: "127.0.0.1:0"), options: options, time: time,
      gate: { _ in
        head.yield()
        return .take(isProven: true)
      }, handler: { .refusal(200, "\($0.path) \($0.body.count) \($0.headTime == begun)(end)") })
    let (slow, idle) = (try client(server), try client(server))
    slow.send(Self.post("/slow", bytes: 900_000, sent: 100_000))
    for await _ in heads { break }
    idle.send(Self.post("/idle", bytes: 100, sent: 10))
    for await _ in heads { break }
    // A line of 8 KiB/s needs 109 s.
    time.advance(by: .seconds(125))
    #expect(await idle.receive().hasPrefix("HTTP/1.1 408"), "it is ended, and the deadline of the other was looked at")
    slow.send(String(repeating: "x", count: 800_000))
    #expect(await slow.answers(1).contains("/slow 900000 true(end)"))
    await server.stop()
  }

  @Test("bodies that don't fit beside the others are 503 with Retry-After; the others are taken") func budget()
    async throws
  {
    try await withServer {
      ($0.bodiesBytesMax, $0.trustedProxies) = (10_000, [NetworkRange("127.0.0.1")!])  // so they are proven
    } _: { server in
      let first = try client(server)
      first.send(Self.post("/first", bytes: 9000, sent: 8999))
      let second = try client(server)
      // The first one's bytes may still be on their way: it is refused once they are there.
      var answer = ""
      while !answer.hasPrefix("HTTP/1.1 503") {
        second.send(Self.post("/second", bytes: 5000))
        answer = await second.receive { $0.contains("(end)") || $0.contains("try again") }
        try #require(!answer.isEmpty)
      }
      #expect(answer.contains("Retry-After: 1"))
      first.send("x")
      #expect(await first.answers(1).contains("/first 9000(end)"))
    }
  }

  @Test("the task of a reader's GET is cancelled once its client has gone, and no other one", arguments: [true, false])
  func cancels(isGet: Bool) async throws {
    let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
    let (ends, ended) = AsyncStream.makeStream(of: Bool.self)
    let handler: HTTPServer.Handler = { request in
      guard request.path == "/first" else { return .refusal(200, "(end)") }
      arrived.yield()
      let began = ContinuousClock.now
      while !Task.isCancelled, ContinuousClock.now - began < .seconds(isGet ? 20 : 2) { await Task.yield() }
      ended.yield(Task.isCancelled)
      return .refusal(200, "(end)")
    }
    try await withServer {
      ($0.isBackground, $0.headTimeout) = (true, .seconds(1))
    } handler: { request in
      await handler(request)
    } _: { server in
      var gone: RawClient? = try client(server)
      gone?.send(isGet ? Self.get("/first") : Self.post("/first", bytes: 0))
      for await _ in arrivals { break }
      gone = nil
      for await isCancelled in ends {
        #expect(isCancelled == isGet)
        break
      }
      let other = try client(server)
      other.send(Self.get("/"))
      #expect(await other.answers(1).contains("200"))
    }
  }

  @Test("a stop answers what is in flight, ends idle connections, and takes no new one") func stops() async throws {
    let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
    let (gate, open) = AsyncStream.makeStream(of: Void.self)
    let handler: HTTPServer.Handler = { _ in
      arrived.yield()
      for await _ in gate { break }
      return .refusal(200, "late(end)")
    }
    try await withServer(handler: handler) { server in
      let (busy, idle) = (try client(server), try client(server))
      busy.send(Self.get("/"))
      for await _ in arrivals { break }
      let stopping = Task { await server.stop() }
      open.yield()
      #expect(await busy.answers(1).contains("late(end)"))
      #expect(await idle.receive() == "")
      await stopping.value
      #expect(RawClient(port: server.port) == nil)
    }
  }
}
