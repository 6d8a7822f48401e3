import Glibc
import PrismBase
import PrismControl
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismLinux

@Suite("The control socket", .timeLimit(.minutes(10)))
struct ControlServerTests {
  private let folder = TemporaryFolder()
  private let log = Logger(level: .error)

  private func serve(
    _ handler: @escaping ControlServer.Handler, _ body: (_ path: String) async throws -> Void
  ) async throws {
    let listener = try UnixListener(path: folder("control.sock"), mode: 0o660)
    let server = try ControlServer(listener: listener, group: nil, log: log)
    await server.start(handler: handler)
    try await body(folder("control.sock"))
    await server.stop()
  }

  /// Answers with the command's name, then `done`.
  private static let echo: ControlServer.Handler = { request, _ in
    AsyncStream { stream in
      stream.yield(["command": .string(request.command.rawValue)])
      stream.yield(["done": true])
      stream.finish()
    }
  }

  @Test("requests are answered one after another on a connection, pipelined ones too")
  func several() async throws {
    try await serve(Self.echo) { path in
      let client = try #require(LineClient(path))
      client.send("{\"command\":\"status\"}\n{\"command\":\"network\"}\r\n")
      for command in ["status", "network"] {
        #expect(await client.line() == ["command": .string(command)])
        #expect(await client.line() == ["done": true])
      }
      client.send("{\"command\":\"flush\"}\n")
      #expect(await client.line() == ["command": "flush"])
    }
  }

  @Test("a client that ends its side after the request still gets its answer")
  func halfClosed() async throws {
    try await serve(Self.echo) { path in
      let client = try #require(LineClient(path))
      client.send("{\"command\":\"status\"}\n")
      client.endSending()
      #expect(await client.line() == ["command": "status"])
      #expect(await client.line() == ["done": true])
      #expect(await client.line() == nil)
    }
  }

  @Test("a bad request is answered, and the next one served; an endless one ends the connection")
  func badRequests() async throws {
    try await serve(Self.echo) { path in
      let client = try #require(LineClient(path))
      for bad in ["nonsense", "[]", "{\"command\":\"dance\"}", ""] {
        client.send(bad + "\n")
        let answer = await client.line()
        #expect(answer?["error"]?["exitCode"]?.int == 64)
        #expect(answer?["done"] == true)
      }
      client.send("{\"command\":\"status\"}\n")
      #expect(await client.line() == ["command": "status"])
      #expect(await client.line() == ["done": true])
      client.send(String(repeating: "x", count: 70_000))
      #expect(await client.line()?["error"]?["exitCode"]?.int == 64)
    }
  }

  @Test("a request goes on no longer than its client stays", arguments: [false, true])
  func clientGone(afterHalfClose: Bool) async throws {
    let ended = Mutex(false)
    let handler: ControlServer.Handler = { _, _ in
      AsyncStream { stream in
        stream.yield(["event": 1])
        stream.onTermination = { _ in ended.withLock { $0 = true } }
      }
    }
    try await serve(handler) { path in
      var client = LineClient(path)
      client?.send("{\"command\":\"tail\"}\n")
      if afterHalfClose { client?.endSending() }
      #expect(await client?.line() == ["event": 1])
      #expect(!ended.withLock { $0 })
      client = nil
      try await eventually("the request is ended") { ended.withLock { $0 } }
    }
  }

  @Test("clients that go away with half a request leave no connection behind")
  func carelessClients() async throws {
    try await serve(Self.echo) { path in
      for _ in 0..<(3 * ControlPlaces.connectionsMax) { LineClient(path)?.send("{\"command\"") }
      try await eventually("a client is answered") {
        let client = LineClient(path)
        client?.send("{\"command\":\"status\"}\n")
        return await client?.line() == ["command": "status"]
      }
    }
  }

  @Test("a reader that is slow is waited for, not buffered for")
  func slowReader() async throws {
    let produced = Mutex(0)
    let handler: ControlServer.Handler = { _, _ in
      AsyncStream {
        produced.withLock { $0 += 1 }
        return ["padding": .string(String(repeating: "p", count: 10_000))]
      }
    }
    try await serve(handler) { path in
      let client = try #require(LineClient(path))
      client.send("{\"command\":\"export\"}\n")
      #expect(await client.line() != nil)
      var before = -1
      while before != produced.withLock({ $0 }) {  // until the socket is full and nothing moves any more
        before = produced.withLock { $0 }
        try await Task.sleep(for: .milliseconds(200))
      }
      #expect(before < 1000)
      for _ in 0..<200 { #expect(await client.line() != nil) }
      try await eventually("it goes on") { [before] in produced.withLock { $0 } > before }
    }
  }

  @Test("stopping ends requests under way and closes their connections")
  func stopping() async throws {
    let listener = try UnixListener(path: folder("control.sock"), mode: 0o660)
    let server = try ControlServer(listener: listener, group: nil, log: log)
    await server.start { _, _ in AsyncStream { $0.yield(["event": 1]) } }
    let client = try #require(LineClient(folder("control.sock")))
    client.send("{\"command\":\"tail\"}\n")
    #expect(await client.line() == ["event": 1])
    await server.stop()
    #expect(await client.line() == nil)
    let path = folder("control.sock")
    try await eventually("the socket is gone") { access(path, F_OK) != 0 }
  }

  @Test(
    "root, the daemon's own user and the members of control.group may do everything, those of control.readers read",
    arguments: [
      (0, 0, [], .full), (1000, 1000, [], .full), (1001, 1001, [], nil), (1001, 50, [], .full),
      (1001, 1001, [50], .full), (1001, 1001, [51], .reader), (1001, 51, [], .reader), (1001, 1001, [50, 51], .full),
      (1001, 1001, [52], nil), (1000, 51, [], .full),
    ] as [(UInt32, UInt32, Set<UInt32>, ControlRole?)])
  func peers(user: UInt32, group: UInt32, groups: Set<UInt32>, role: ControlRole?) {
    let peer = PeerCredentials(processID: 1, userID: user, groupID: group, groupIDs: groups)
    #expect(ControlAccess(ownUserID: 1000, groupID: 50, readersID: 51).role(of: peer) == role)
    let isItself = user == 0 || user == 1000
    #expect(ControlAccess(ownUserID: 1000).role(of: peer) == (isItself ? .full : nil))
  }

  @Test(
    "the socket's mode lets in the one group that is configured; with two everyone connects and the peer decides",
    arguments: [
      (nil, nil, 0o660, nil), ("a", nil, 0o660, "a"), (nil, "b", 0o660, "b"), ("a", "a", 0o660, "a"),
      ("a", "b", 0o666, nil),
    ] as [(String?, String?, UInt32, String?)])
  func rights(group: String?, readers: String?, mode: UInt32, expected: String?) {
    #expect(ControlAccess.rights(group: group, readers: readers) == (mode, expected))
  }

  @Test("readers never take the last connections, nor one reader those of the others")
  func places() {
    func open(_ counts: [(ControlRole, UInt32, Int)]) -> [ControlCaller] {
      counts.flatMap { role, user, count in
        Array(repeating: ControlCaller(userID: user, processID: 1, role: role), count: count)
      }
    }
    func refusal(_ role: ControlRole, _ user: UInt32, _ counts: [(ControlRole, UInt32, Int)]) -> String? {
      ControlPlaces.refusal(of: ControlCaller(userID: user, processID: 1, role: role), among: open(counts))
    }
    #expect(refusal(.reader, 7, [(.reader, 7, 15)]) == nil)
    #expect(refusal(.reader, 7, [(.reader, 7, 16)])?.contains("16") == true)
    #expect(refusal(.reader, 8, [(.reader, 7, 16)]) == nil)
    let readers: [(ControlRole, UInt32, Int)] = [(.reader, 7, 16), (.reader, 8, 16), (.reader, 9, 16)]
    #expect(refusal(.reader, 10, readers)?.contains("48") == true)
    #expect(refusal(.full, 0, readers) == nil)
    #expect(refusal(.full, 0, readers + [(.full, 0, 15)]) == nil)
    #expect(refusal(.full, 0, readers + [(.full, 0, 16)])?.contains("64") == true)
  }

  @Test("another user learns why the connection is refused")
  func stranger() async throws {
    guard geteuid() == 0, Glibc.access("/usr/bin/perl", X_OK) == 0 else {
      Issue.record("SKIPPED, not root, or no perl: another user can't be tried", severity: .warning)
      return
    }
    try await serve(Self.echo) { path in
      chmod(path, 0o666)
      chmod(folder.path, 0o755)
      let script = "use IO::Socket::UNIX; print IO::Socket::UNIX->new(Peer => '\(path)')->getline"
      let (output, _) = try await ChildProcess.run([
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/perl", "-e", script,
      ])
      let answer = try JSONValue(parsing: output)
      #expect(answer["error"]?["exitCode"]?.int == 77)
      #expect(answer["error"]?["message"]?.string?.hasPrefix("user 65534 may not control this daemon") == true)
    }
  }
}
