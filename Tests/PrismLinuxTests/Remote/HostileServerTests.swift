import PrismCurl
import PrismEngine
import PrismLinux
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

/// The real transport against a hostile server. The configuration in force stays, and status says why.
@Suite("Remote configuration of a hostile server", .timeLimit(.minutes(2)))
struct HostileServerTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The reason that status gives.
    let reason: String
    var timeout: Duration = .seconds(20)
    var publicKey: String?
    let script: ScriptedServer.Script
  }

  private static func answering(_ head: String, _ body: String = "") -> ScriptedServer.Script {
    { client in
      client.readHead()
      client.send("HTTP/1.1 \(head)\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body)
    }
  }

  private static func data(_ data: String) -> ScriptedServer.Script {
    answering("200 OK", #"{"message":"ok","code":1000,"data":"\#(data)"}"#)
  }

  private static func document(_ text: String) -> ScriptedServer.Script {
    answering("200 OK", String(decoding: ScriptedSource.envelope(text), as: UTF8.self))
  }

  static let cases: [Case] = [
    Case(
      testDescription: "a redirect",
      reason: "status 302; redirects are not followed, remote.url must be the place itself",
      script: answering("302 Found\r\nLocation: http://127.0.0.1:1/")),
    Case(
      testDescription: "an answer without end", reason: "badResponse: over \(RemoteEnvelope.bytesMax) bytes of body",
      script: { client in
        client.readHead()
        client.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        let chunk = String(repeating: "A", count: 65_536)
        while client.send(chunk) {}
      }),
    Case(
      testDescription: "headers without end", reason: "badResponse: over 65536 bytes or 100 lines of headers",
      script: { client in
        client.readHead()
        client.send("HTTP/1.1 200 OK\r\n")
        while client.send("X-More: 1\r\n") {}
      }),
    Case(
      testDescription: "a slow drip", reason: "timeout: ", timeout: .milliseconds(400),
      script: { client in
        client.readHead()
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        client.waitForClose()
      }),
    Case(
      testDescription: "a connection that ends within the answer", reason: "reset: ",
      script: { client in
        client.readHead()
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
      }),
    Case(
      testDescription: "another code", reason: "the answer's code is 1001, must be 1000",
      script: answering(
        "200 OK", #"{"code":1001,"data":""}"#)),
    Case(
      testDescription: "a portal's page", reason: "the answer is not JSON at byte 0: a value is expected",
      script: answering(
        "200 OK", "<html>Welcome")),
    Case(
      testDescription: "no base64", reason: "the answer's `data` is not base64 (RFC 4648, padded)", script: data("%%%%")
    ),
    Case(testDescription: "no gzip", reason: "the answer's `data` is not one whole gzip member", script: data("AAAA")),
    Case(
      testDescription: "gzip that is cut", reason: "the answer's `data` is not one whole gzip member",
      script: data("H4sIAAAAAAACA6tWykvMTS0uSExOLVayio7VUSotSEks")),
    Case(
      testDescription: "no JSON", reason: "remote: data: is not JSON at byte 0: a value is expected",
      script: document("x")),
    Case(
      testDescription: "deep nesting", reason: "remote: data: is not JSON at byte 64: over 64 levels deep",
      script: document(
        String(repeating: "[", count: 100_000))),
    Case(
      testDescription: "keys of the daemon",
      reason: "remote: ingest: is unknown; remote configuration sets keys of namespaces only",
      script: document(
        #"{"namespaces":[],"updateTime":1,"ingest":{"socket":"/x"}}"#)),
    Case(
      testDescription: "keys that are never its to set",
      reason:
        "remote: shop.tls: can never be set remotely; remote: shop.allow: can never be set remotely; remote: shop.url: is not granted; remote.allow of prismd.yaml lists what is",
      script: document(
        #"{"namespaces":[{"name":"shop","tls":{"caFile":"/x"},"allow":{},"url":"https://x"}],"updateTime":1}"#)),
    Case(
      testDescription: "no signature",
      reason: "the answer is unsigned; with remote.publicKey every answer needs a `signature`",
      publicKey: String(repeating: "ab", count: 32),
      script: document(
        #"{"namespaces":[],"updateTime":1}"#)),
    Case(
      testDescription: "an error with words", reason: #"status 500: out of\u{7}order"#,
      script: answering(
        "500 Oops", #"{"message":"out of\u0007order"}"#)),
  ]

  @Test("is refused", arguments: cases)
  func refused(hostile: Case) async throws {
    let server = ScriptedServer(hostile.script)
    let key = hostile.publicKey.map { ", publicKey: \"\($0)\"" } ?? ""
    let rig = RemoteRig(remote: "{url: \"\(server.url)\"\(key)}")
    let running = try await rig.start(source: CurlTransport(), timeout: hostile.timeout)
    let before = running.engine.hub.current
    try await eventually("the answer is judged") {
      await running.client.status.controlJSON["nextAskInSeconds"]?.int != nil
    }
    let status = await running.client.status.controlJSON
    let reason = try #require(status["cause"]?.string ?? status["lastFailed"]?["reason"]?.string)
    #expect(hostile.reason.hasSuffix(": ") ? reason.hasPrefix(hostile.reason) : reason == hostile.reason)
    #expect(running.engine.hub.current == before)
    #expect(status["lastApplied"] == .null)
    await running.stop()
  }

  @Test("a bomb of 64 MiB ends at 8")
  func bomb() async throws {
    let made = try await ChildProcess.run(["sh", "-c", "head -c 67108864 /dev/zero | gzip -9n | base64 -w0"])
    let server = ScriptedServer(Self.data(made.output))
    let rig = RemoteRig(remote: "{url: \"\(server.url)\"}")
    let running = try await rig.start(source: CurlTransport())
    try await eventually("the bomb is judged") {
      await running.client.status.controlJSON["nextAskInSeconds"]?.int != nil
    }
    #expect(
      await running.client.status.controlJSON["lastFailed"]?["reason"]
        == "the answer's `data` unpacks to over 8388608 bytes")
    await running.stop()
  }
}
