import Foundation
import PrismProtocol
import PrismTestSupport
import Testing

/// `prism-collector record` on a collector that runs, and on its store.
@Suite("prism-collector record") struct RecordCommandTests {
  private static func ask(_ harness: Harness, _ words: [String], input: String = "") async throws -> Ran {
    try await Programs.run(
      Programs.collector,
      ["record"] + words + [
        "--namespace", "shop", "--table", "product", "--key", "main=\(harness.folder)/main.key", "--state",
        harness.collectorState,
      ], input: input)
  }

  @Test("each command changes or reads records, whether the collector runs or not", arguments: [true, false])
  func commands(isRunning: Bool) async throws {
    try await withHarness(namespaces: ["shop": "url: URL\n"]) { harness in
      if isRunning { try await harness.startCollector() }
      let put = try await Self.ask(harness, ["put", "sku/1", #"{"price":40}"#])
      #expect(put.exitCode == 0 && put.output.contains(#""serverId":"sku/1""#), "\(put.error)")
      let patched = try await Self.ask(harness, ["patch", "sku/1", #"{"name":"Ring"}"#])
      #expect(patched.output.contains(#""fields":{"price":40,"name":"Ring"}"#), "\(patched.error)")
      #expect(try await Self.ask(harness, ["get", "sku/1"]).output == patched.output)
      let lines = (0..<2500).map { #"{"id":"r\#($0)","fields":{}}"# } + [#"{"id":"sku/1","delete":true}"#]
      let many = try await Self.ask(harness, ["put"], input: lines.joined(separator: "\n"))
      #expect(many.output == "{\"stored\":2500,\"deleted\":1}\n", "\(many.error)")
      #expect(try await Self.ask(harness, ["list"]).lines.count == 2500)
      #expect(try await Self.ask(harness, ["delete", "r0", "--device", "d"]).exitCode == 1, "the table is the fleet's")
      #expect(try await Self.ask(harness, ["delete", "r0"]).output == "{\"deleted\":true}\n")
      let absent = try await Self.ask(harness, ["get", "r0"])
      #expect(absent.exitCode == 1 && absent.error.contains("there is no record of this id"))
      let wrong = try await Self.ask(harness, ["put"], input: "{}\n")
      #expect(wrong.exitCode == 1 && wrong.error.contains("line 1: it is no change"))
      for words in [
        ["drop"], ["put", "a"], ["get"], ["list", "a"], ["put", "--from", "0"], ["put", "--from", "x"],
        ["list", "--from", "1"],
      ] {
        #expect(try await Self.ask(harness, words).exitCode == 64, "\(words)")
      }
    }
  }

  @Test("a file that stops at a faulty line goes on behind what is done", arguments: [true, false])
  func goesOn(isRunning: Bool) async throws {
    try await withHarness(namespaces: ["shop": "url: URL\n"]) { harness in
      if isRunning { try await harness.startCollector() }
      var lines = (1...2500).map { #"{"id":"r\#($0)","fields":{"n":\#($0)}}"# }
      lines[1998] = ""
      lines[2099] = #"{"id":"7","fields":{}}"#
      let stopped = try await Self.ask(harness, ["put"], input: lines.joined(separator: "\n"))
      #expect(stopped.exitCode == 1 && stopped.error.contains("line 2100: 7: ids of digits"), "\(stopped.error)")
      #expect(stopped.error.contains("the first 2000 lines are carried out; go on with --from 2001"))
      #expect(try await Self.ask(harness, ["list"]).lines.count == 1999)
      lines[2099] = #"{"id":"r1","delete":true}"#
      // A line before is not looked at.
      lines[0] = "{}"
      let done = try await Self.ask(harness, ["put", "--from", "2001"], input: lines.joined(separator: "\n"))
      #expect(done.output == "{\"stored\":499,\"deleted\":1}\n", "\(done.error)")
      let behind = try await Self.ask(harness, ["put", "--from", "9000"], input: lines.joined(separator: "\n"))
      #expect(behind.output == "{\"stored\":0,\"deleted\":0}\n")
      #expect(try await Self.ask(harness, ["list"]).lines.count == 2497)
    }
  }
}
