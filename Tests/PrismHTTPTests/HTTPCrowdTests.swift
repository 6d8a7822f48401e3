import PrismBase
import PrismHTTP
import PrismTestSupport
import Synchronization
import Testing

/// A server with few places, and its clients.
@Suite("A server that is full", .timeLimit(.minutes(2)))
struct HTTPCrowdTests {
  private static func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n" }

  private func withServer(
    _ change: (inout HTTPServerOptions) -> Void, gate: @escaping HTTPServer.Gate = { _ in .take() },
    _ body: (HTTPServer) async throws -> Void
  ) async throws {
    var options = HTTPServerOptions()
    change(&options)
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0"), options: options, gate: gate) {
      if $0.path == "/device" { $0.prove() }
      let tls = $0.isForwardedSecurely ? " TLS" : ""
      return .refusal(200, "\($0.peer.address) \($0.peer.isLocal) \($0.body.count)\(tls)(end)")
    }
    do { try await body(server) } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  @Test("idle connections close no page: one gives way for each new one") func idle() async throws {
    let crowded = Mutex<[CrowdedReason]>([])
    try await withServer {
      $0.connectionsMax = 16
      $0.onCrowded = { reason, _ in crowded.withLock { $0.append(reason) } }
    } _: { server in
      let held = try (0..<100).map { _ in try #require(RawClient(port: server.port)) }
      let client = try #require(RawClient(port: server.port))
      client.send(Self.get("/"))
      #expect(await client.answers(1).contains("200 OK"))
      #expect(await held[0].receive() == "")
      #expect(server.connections.unproven <= 16 && crowded.withLock { $0.contains(.unproven) })
    }
  }

  @Test("a device that proved itself keeps its connection while strangers come") func strangers() async throws {
    try await withServer {
      $0.connectionsMax = 16
    } _: { server in
      let device = try #require(RawClient(port: server.port))
      device.send(Self.get("/device"))
      #expect(await device.answers(1).contains("200 OK"))
      let held = try (0..<100).map { _ in try #require(RawClient(port: server.port)) }
      device.send(Self.get("/device"))
      #expect(await device.answers(1).contains("200 OK"))
      #expect(server.connections.proven == 1)
      _ = held
    }
  }

  @Test("the head's refusal of a large body goes out before the body, and is read") func beforeBody() async throws {
    try await withServer {
      $0.bodyBytesMax = 8_000_000
    } gate: { _ in
      .refuse(.refusal(401, "no(end)"))
    } _: { server in
      for head in ["Content-Length: 8000000", "Transfer-Encoding: chunked"] {
        let client = try #require(RawClient(port: server.port))
        client.send("POST / HTTP/1.1\r\nHost: h\r\n\(head)\r\n\r\n")
        let answer = await client.answers(1)
        #expect(answer.hasPrefix("HTTP/1.1 401"), "\(head): \(answer)")
        client.send(String(repeating: "x", count: 100_000))
      }
      let small = try #require(RawClient(port: server.port))
      for _ in 0..<2 {
        small.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
        #expect(await small.answers(1).hasPrefix("HTTP/1.1 401"))
      }
    }
  }

  @Test("a body that stops is answered with 408") func stops() async throws {
    let time = ManualTime()
    var options = HTTPServerOptions()
    options.stopTimeout = .milliseconds(40)  // the deadlines are looked at four times in it
    let (heads, head) = AsyncStream.makeStream(of: Void.self)
    let server = try HTTPServer(
      listener: ListeningSocket(address: "127.0.0.1:0"), options: options, time: time,
      gate: { _ in
        head.yield()
        return .take()
      }, handler: { _ in .refusal(200, "(end)") })
    let client = try #require(RawClient(port: server.port))
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000\r\n\r\nx")
    for await _ in heads { break }
    time.advance(by: .seconds(6))
    #expect(await client.receive().hasPrefix("HTTP/1.1 408"))
    await server.stop()
  }

  @Test("bodies of strangers that are held back keep no device from sending") func heldBodies() async throws {
    try await withServer {
      ($0.bodiesBytesMax, $0.bodyBytesMax) = (400_000, 200_000)
    } _: { server in
      let held = try (0..<8).map { _ in
        let client = try #require(RawClient(port: server.port))
        client.send(
          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n" + String(repeating: "x", count: 45_000))
        return client
      }
      let device = try #require(RawClient(port: server.port))
      device.send(Self.get("/device"))
      #expect(await device.answers(1).contains("200 OK"))
      device.send(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + String(repeating: "x", count: 200_000))
      #expect(await device.answers(1).contains(" 200000(end)"))
      _ = held
    }
  }

  @Test(
    "behind a proxy that is trusted the peer is the last address that is not",
    arguments: [
      ("X-Forwarded-For: 10.0.0.1, 192.0.2.7\r\n", "192.0.2.7 false"),
      ("X-Forwarded-For: 192.0.2.7, 127.0.0.1\r\n", "192.0.2.7 false"),
      ("X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-For: 2001:db8::1\r\n", "2001:db8::1 false"),
      ("X-Forwarded-For: 192.0.2.7:40000\r\n", "192.0.2.7 false"),
      ("X-Forwarded-For: [2001:db8::1]:40000\r\n", "2001:db8::1 false"),
      ("X-Forwarded-For: ::ffff:192.0.2.7\r\n", "192.0.2.7 false"),
      ("X-Forwarded-For: ::1\r\n", "::1 false"), ("X-Forwarded-For: 192.0.2.0/24\r\n", "127.0.0.1 true"),
      ("X-Forwarded-For: 192.0.2.7, junk\r\n", "127.0.0.1 true"), ("", "127.0.0.1 true"),
    ])
  func forwarded(headers: String, peer: String) async throws {
    let trustedRanges = [("127.0.0.1", peer), ("127.0.0.0/8", peer), ("192.0.2.0/30", "127.0.0.1 true")]
    for (trusted, expected) in trustedRanges {
      try await withServer {
        $0.trustedProxies = [NetworkRange(trusted)!]
      } _: { server in
        let client = try #require(RawClient(port: server.port))
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\(headers)\r\n")
        #expect(await client.answers(1).contains("\r\n\r\n\(expected) "))
      }
    }
  }

  @Test("only a trusted proxy's word counts for TLS, and only one word", arguments: [true, false])
  func forwardedSecurely(isTrusted: Bool) async throws {
    try await withServer {
      $0.trustedProxies = [NetworkRange(isTrusted ? "127.0.0.1" : "192.0.2.0/30")!]
    } _: { server in
      for (words, isSecure) in [(["https"], isTrusted), (["http"], false), (["https", "https"], false), ([], false)] {
        let client = try #require(RawClient(port: server.port))
        let headers = words.map { "X-Forwarded-Proto: \($0)\r\n" }.joined()
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\(headers)X-Forwarded-For: 192.0.2.7\r\n\r\n")
        #expect(await client.answers(1).contains(" 0 TLS(end)") == isSecure, "\(words)")
      }
    }
  }
}
