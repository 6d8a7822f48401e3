import Foundation
import Glibc
import PrismPacket
import PrismProtocol
import Testing

/// prismd against a server of remote configuration that does what it likes: what is in force stays, and status says why.
@Suite(.timeLimit(.minutes(30)))
struct HostileRemoteTests {
  private struct Hostile: Sendable {
    let what: String
    /// How `cause` (no answer) or `reason` (of what was refused) begins in status.
    let told: String
    let script: @Sendable (HeldAnswer.Say) -> Bool

    init(_ what: String, _ told: String, _ script: @escaping @Sendable (HeldAnswer.Say) -> Bool) {
      (self.what, self.told, self.script) = (what, told, script)
    }

    /// An answer that is one, with this in it.
    init(_ what: String, _ told: String, data: String) {
      self.init(what, told, body: #"{"message":"ok","code":1000,"data":"\#(data)"}"#)
    }

    init(_ what: String, _ told: String, body: String) {
      self.init(what, told) { $0("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8) }
    }
  }

  private static func shell(_ command: String) async throws -> String {
    let ran = try await Programs.run("sh", ["-c", command])
    try #require(ran.exitCode == 0, "\(ran.error)")
    return ran.output
  }

  private static func hostile() async throws -> [Hostile] {
    let bomb = try await shell("head -c 67108864 /dev/zero | gzip -9n | base64 -w0")
    let noJSON = try await shell("printf x | gzip -n | base64 -w0")
    return [
      Hostile("a redirect", "status 302; redirects are not followed") {
        $0("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".utf8)
      },
      Hostile("an answer without end", "badResponse: over ") { say in
        var goesOn = say("HTTP/1.1 200 OK\r\n\r\n".utf8)
        let chunk = [UInt8](repeating: 0x41, count: 65_536)
        while goesOn { goesOn = say(chunk) }
        return goesOn
      },
      Hostile("a length that is not kept", "reset: ") { $0("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{".utf8) },
      Hostile("a portal's page", "the answer is not JSON at byte 0", body: "<html>Welcome"),
      Hostile("another code", "the answer's code is 1001", body: #"{"code":1001,"data":""}"#),
      Hostile("a bomb of 64 MiB", "the answer's `data` unpacks to over 8388608 bytes", data: bomb),
      Hostile("no base64", "the answer's `data` is not base64", data: "%%%%"),
      Hostile("no gzip", "the answer's `data` is not one whole gzip member", data: "AAAA"),
      Hostile("gzip that is cut", "the answer's `data` is not one whole gzip member", data: "H4sIAAAAAAACA6tWykvM"),
      Hostile("no JSON", "remote: data: is not JSON at byte 0", data: noJSON),
      Hostile("a slow drip", "timeout: ") { say in
        var goesOn = say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".utf8)
        while goesOn {
          usleep(500_000)
          goesOn = say("{".utf8)
        }
        return goesOn
      },
    ]
  }

  @Test("a bomb, a huge answer, a slow drip, a redirect, broken base64, gzip and JSON are refused; all stays as it was")
  func refused() async throws {
    let hostile = try await Self.hostile()
    let server = try HeldAnswer()
    defer { server.stop() }
    let port = try Harness.freePort()
    let extra = "remote: {url: \"http://127.0.0.1:\(server.port)\"}\nmetrics: {listen: \(port)}"
    try await withHarness(namespaces: ["shop": "monitorList: [{type: sample}]\n"], extra: extra) { harness in
      try await harness.startDaemon()
      try await asked(server)
      let good = #"{"namespaces":[{"name":"shop","maxItem":3}],"updateTime":1,"full":true}"#
      server.answer(try RemoteEnvelope.seal(Array(good.utf8), key: nil))
      try await waitUntil("the good answer is in force") {
        try await harness.inForce("maxItem", of: "shop") == 3
      }
      let generation = try await harness.generation()
      // A reload asks at once where the one before is troubled; the first one, by the watched file, for a key that is new.
      try harness.writeDaemonFile(extra.replacing("}\nm", with: ", intervalSecond: 3600}\nm"))
      for (number, hostile) in hostile.enumerated() {
        if number > 0 { try await harness.reload() }
        try await expect(hostile, server, harness)
        #expect(try await harness.inForce("maxItem", of: "shop") == 3, "\(hostile.what)")
        #expect(try await harness.generation() == generation + 1, "\(hostile.what)")
      }
      let page = try await Programs.run("curl", ["-s", "http://127.0.0.1:\(port)/metrics"])
      for line in [
        #"prism_remote_results_total{result="applied"} 1"#, #"prism_remote_results_total{result="unreadable"} 7"#,
        "prism_remote_version 1", "prism_remote_refused 1",
      ] {
        let isThere = page.lines.contains(line)
        #expect(isThere, "\(line)")
      }
      let failed = page.lines.first { $0.hasPrefix(#"prism_remote_results_total{result="failed"} "#) }
      #expect(failed?.split(separator: " ").last.flatMap { Int($0) } ?? 0 >= 4)
    }
  }

  private func asked(_ server: HeldAnswer) async throws {
    try await waitUntil("the question is there") { server.waiting > 0 }
  }

  private func expect(_ hostile: Hostile, _ server: HeldAnswer, _ harness: Harness) async throws {
    try await asked(server)
    #expect(try await harness.status()["remote"]?["state"] == "asking", "\(hostile.what)")
    var told = ""
    try await waitUntil("\(hostile.what) is reported", otherwise: told) {
      // After a failure it may ask again before the failure is seen.
      server.reply(hostile.script)
      let remote = try await harness.status()["remote"]
      guard remote?["state"] != "asking" else { return false }
      told = remote?["cause"]?.string ?? remote?["lastFailed"]?["reason"]?.string ?? ""
      return told.hasPrefix(hostile.told)
    }
  }
}
