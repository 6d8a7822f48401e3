import Foundation
import PrismBase
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

/// `prism-collector command` on a collector that runs, and on its store.
@Suite("prism-collector command") struct CommandSendTests {
  private static func ask(_ harness: Harness, _ words: [String]) async throws -> Ran {
    try await Programs.run(
      Programs.collector,
      ["command"] + words + [
        "--namespace", "shop", "--device", "d1", "--key", "main=\(harness.folder)/main.key", "--state",
        harness.collectorState,
      ])
  }

  private static func commands(_ harness: Harness) async throws -> [CommandRequest] {
    try await ask(harness, ["list", "--json"]).lines.map { line in
      let record = try JSONValue(parsing: Array(line.utf8))
      return try CommandRequest(
        fields: try #require(record["fields"]), namespace: NamespaceName("shop")!, deviceID: "d1",
        id: RecordID(try #require(record["id"]?.string))!)
    }
  }

  @Test("a command is written as devices read it, signed if asked, and listed", arguments: [true, false])
  func commands(isRunning: Bool) async throws {
    try await withHarness(namespaces: ["shop": "url: URL\n"]) { harness in
      let pem = "\(harness.folder)/command.pem"
      let made = try await Programs.run("openssl", ["genpkey", "-algorithm", "ed25519", "-out", pem])
      try #require(made.exitCode == 0, "\(made.error)")
      let key = try #require(SigningKey(pem: try SmallFile.read(pem)))
      if isRunning { try await harness.startCollector() }
      let words = [
        "send", "log", "level=debug", "minutes=30", "isLoud=true", #"name="7""#, "empty=", "--expires", "15m",
      ]
      let sent = try await Self.ask(harness, words + ["--sign", pem])
      #expect(sent.exitCode == 0, "\(sent.error)")
      let plain = try await Self.ask(harness, ["send", "flush"])
      let commands = try await Self.commands(harness)
      #expect(commands.map(\.id.text) == [sent, plain].map { $0.lines[0] })
      try #require(commands.count == 2)
      #expect(commands[0].name == .log && commands[0].isSigned(by: key.publicKey))
      #expect(
        commands[0].args == [
          "level": .text("debug"), "minutes": .integer(30), "isLoud": .truth(true), "name": .text("7"),
          "empty": .text(""),
        ])
      let now = Int64(Date().timeIntervalSince1970 * 1000)
      #expect(
        (0...900_000).contains(commands[0].expires - now) && (900_001...3_600_000).contains(commands[1].expires - now))
      #expect(commands[1].signature == nil && commands[1].args.isEmpty)
      let lines = try await Self.ask(harness, ["list"]).lines.map { $0.split(separator: " ").map(String.init) }
      #expect(lines.map { $0[1...2].joined(separator: " ") } == ["NAME STATE", "log waiting", "flush waiting"])
    }
  }

  @Test("wrong words, keys and values are refused before anything is sent") func refused() async throws {
    try await withHarness(namespaces: ["shop": "url: URL\n"]) { harness in
      let open = "\(harness.folder)/open.pem"
      try "no key".write(toFile: open, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: open)
      let cases: [(words: [String], code: Int32, says: String)] = [
        (["drop"], 64, "no command `command drop`"), (["send"], 64, "`command send` needs COMMAND"),
        (["list", "x"], 64, "`x` belongs to no option of `command list`"),
        (["send", "reboot"], 64, "requeue, drop, ask, trigger, erase or accept"),
        (["send", "erase", "where=ms > 1"], 64, "must be FIELD=VALUE"),
        (["send", "flush", "a"], 64, "KEY=VALUE"),
        (["send", "flush", "a=1", "a=2"], 64, "once"), (["send", "flush", "a b=1"], 64, "a name in args"),
        (["send", "flush", "--expires", "31d"], 64, "at most 30 days"),
        (["send", "flush", "--expires", "0s"], 64, "0s"),
        (["send", "flush", "--expires", "99999999999999999999d"], 64, "must be a span"),
        (["send", "flush", "--sign", "/nowhere"], 66, "/nowhere"),
        (["send", "flush", "--sign", open], 64, "chmod 600"),
        (["send", "flush", "--sign", harness.folder + "/main.key"], 64, "holds no Ed25519 key"),
      ]
      for (words, code, says) in cases {
        let ran = try await Self.ask(harness, words)
        #expect(ran.exitCode == code && ran.error.contains(says), "\(words): \(ran.exitCode) \(ran.error)")
      }
      #expect(try await Self.commands(harness).isEmpty)
    }
  }
}
