import Foundation
import Glibc
import PrismBase
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

/// Commands from a server to a device and back, with the programs as they are.
@Suite("Commands end to end") struct CommandTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    monitorList: [{type: doctor, isUploadPayload: true}, {type: file, isUploadPayload: true}]
    recordIntervalSecond: 1
    """

  private static func harness(
    _ commands: String, shop: String = shop, _ body: (Harness) async throws -> Void
  ) async throws {
    try await withHarness(namespaces: ["shop": shop], extra: commands) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      try await body(harness)
    }
  }

  private static func send(_ harness: Harness, _ id: String, _ fields: String) async throws {
    let ran = try await Programs.run(
      Programs.collector,
      [
        "record", "put", "--namespace", "shop", "--table", "prism.command", "--device", "e2e-device", "--key",
        "main=\(harness.folder)/main.key", "--state", harness.collectorState, id, fields,
      ])
    try #require(ran.exitCode == 0, "\(ran.error)")
  }

  private static func command(_ name: String, _ args: String = "{}") -> String {
    #"{"name":"\#(name)","args":\#(args),"expires":\#(Int(Date().timeIntervalSince1970) * 1000 + 600_000)}"#
  }

  /// At the collector.
  private static func answer(_ harness: Harness, _ id: String) async throws -> CommandAnswer? {
    let rows = try await harness.query("SELECT fields FROM records WHERE tab = 'prism.command' AND id = '\(id)'")
    return try rows.first?.first.flatMap { CommandAnswer(fields: try JSONValue(parsing: $0)) }
  }

  private static func reaches(_ state: CommandState, _ harness: Harness, _ id: String) async throws -> JSONValue? {
    try await waitUntil("\(id) is \(state.rawValue)") { try await answer(harness, id)?.state == state }
    return try await answer(harness, id)?.result
  }

  @Test("flush, doctor, log and collect are carried out, and their answers come back") func endToEnd() async throws {
    let files = TemporaryFolder()
    try files.write("the log of the app", to: "app.log")
    let allow = "commands: {allow: [flush, doctor, log, collect], files: ['\(files.path)/*.log']}\n"
    try await Self.harness(allow) { harness in
      try await Self.send(harness, "f1", Self.command("flush"))
      try await Self.send(harness, "d1", Self.command("doctor"))
      try await Self.send(harness, "l1", Self.command("log", #"{"level":"debug","minutes":1}"#))
      try await Self.send(harness, "c1", Self.command("collect", #"{"path":"\#(files("app.log"))"}"#))
      try await Self.send(harness, "c2", Self.command("collect", #"{"path":"\#(harness.folder)/main.key"}"#))
      try await Self.send(harness, "r1", Self.command("run", #"{"name":"x"}"#))
      #expect(try await Self.reaches(.done, harness, "f1") == nil)
      #expect(try await Self.reaches(.done, harness, "d1")?["exit"] != nil)
      #expect(try await Self.reaches(.done, harness, "l1") == "debug for 1 min")
      #expect(try await Self.reaches(.done, harness, "c1") == ["size": 18])
      #expect(try await Self.reaches(.refused, harness, "c2")?.string?.contains("commands.files") == true)
      #expect(try await Self.reaches(.refused, harness, "r1")?.string?.contains("commands.allow") == true)
      #expect(harness.daemonLog.contains("debug "))
      try await waitUntil("both reports are at the collector") {
        try await harness.query("SELECT report_id FROM report WHERE length(payload) > 0 ORDER BY 1") == [
          ["c1"], ["d1"],
        ]
      }
      let list = try await harness.prismctl("command", "list", "--namespace", "shop")
      #expect(list.exitCode == 0 && list.lines.contains { $0.contains("c1") && $0.contains("done") }, "\(list.output)")
      let lines = try await harness.prismctl("command", "list", "--namespace", "shop", "--json").lines
      #expect(lines.count == 6)
      let put = ["record", "put", "--namespace", "shop", "--table", "prism.command", "x", "{}"]
      let refused = try await harness.prismctl(put)
      #expect(refused.exitCode == 1 && refused.error.contains("read_only"), "\(refused.error)")
      #expect(try await harness.prismctl("doctor", "--json").output.contains("without a signature"))
    }
  }

  @Test("the list says the whole reason for which a command failed") func failed() async throws {
    let shop = Self.shop.replacing("{type: doctor, isUploadPayload: true}", with: "{type: order}")
    try await Self.harness("commands: {allow: [doctor]}\n", shop: shop) { harness in
      try await Self.send(harness, "d1", Self.command("doctor"))
      let reason = try #require(try await Self.reaches(.failed, harness, "d1")?.string)
      #expect(reason.contains("add {type: doctor} to it in"))
      let list = try await Programs.run(
        Programs.collector,
        [
          "command", "list", "--namespace", "shop", "--device", "e2e-device", "--key",
          "main=\(harness.folder)/main.key", "--state", harness.collectorState,
        ])
      #expect(list.output.contains(reason), "\(list.output)")
    }
  }

  @Test("a daemon that is killed while a command runs ends it as interrupted, and never runs it twice")
  func killed() async throws {
    let folder = TemporaryFolder()
    let address = try #require(UnixAddress(path: folder("run.sock")))
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(listener) }
    #expect(address.withPointer { bind(listener, $0, $1) } == 0 && listen(listener, 16) == 0)
    _ = fcntl(listener, F_SETFL, O_NONBLOCK)
    let allow = "commands: {allow: [run], units: [till], runSocket: '\(folder("run.sock"))'}\n"
    try await Self.harness(allow) { harness in
      try await Self.send(harness, "r1", Self.command("run", #"{"name":"till"}"#))
      var unit: Int32 = -1
      try await waitUntil("the unit is started") {
        unit = accept(listener, nil, nil)
        return unit >= 0
      }
      defer { close(unit) }
      try await harness.endDaemon(SIGKILL)
      try await harness.startDaemon()
      #expect(try await Self.reaches(.failed, harness, "r1") == "interrupted")
      try await harness.endDaemon(SIGKILL)
      try await harness.startDaemon()
      try await Self.send(harness, "r2", Self.command("run", #"{"name":"none"}"#))
      #expect(try await Self.reaches(.refused, harness, "r2") != nil, "it has looked at all commands")
      #expect(accept(listener, nil, nil) == -1 && errno == EAGAIN, "no second connection came")
    }
  }

  @Test("what the OpenSSL command line signs is carried out, and nothing else", arguments: [true, false])
  func signed(isSigned: Bool) async throws {
    let folder = TemporaryFolder()
    let key = folder("signing.pem")
    #expect(try await Programs.run("openssl", ["genpkey", "-algorithm", "ed25519", "-out", key]).exitCode == 0)
    let pem = try #require(FileManager.default.contents(atPath: key))
    let publicKey = Base64.encode(try #require(SigningKey(pem: Array(pem))).publicKey)
    let files = "commands: {allow: [collect], files: ['\(folder.path)/*.log']}\n"
    try folder.write("signed", to: "app.log")
    try await Self.harness(files + "remote: {publicKey: \"\(publicKey)\"}\n") { harness in
      let (expires, path) = (Int(Date().timeIntervalSince1970) * 1000 + 600_000, folder("app.log"))
      let (id, bytes) = ("8f14e45f-ceea-467f-a0f1-bc7b3bd2f3d2", path.utf8.count)
      // The lines of docs/records.md, "The record of a command".
      let sign = """
        printf 'prism-command-1\\nshop\\n%s\\n%s\\ncollect\\n\(expires)\\npath\\ns\\n\(bytes)\\n\(path)\\n' e2e-device \(id) >command
        openssl pkeyutl -sign -rawin -inkey signing.pem -in command | base64 -w 0
        """
      let signature = try await Programs.run("sh", ["-c", "cd \(folder.path) && \(sign)"]).output
      #expect(signature.utf8.count == 88)
      let member = isSigned ? #","signature":"\#(signature)""# : ""
      try await Self.send(
        harness, id, #"{"name":"collect","args":{"path":"\#(path)"},"expires":\#(expires)\#(member)}"#)
      let result = try await Self.reaches(isSigned ? .done : .refused, harness, id)
      #expect(isSigned ? result == ["size": 6] : result?.string?.contains("signed commands only") == true)
    }
  }
}
