import Foundation
import Glibc
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// docs/recorder.md, seen by the backend.
@Suite struct RecorderTests {
  @Test("the last 200 reports before a fault arrive, and no others, over a kill of the daemon")
  func lastReports() async throws {
    let shop = """
      {url: URL, periodicTimerSecond: 1, monitorList: [{type: sample, keep: ring}, {type: fault}],
      triggers: [{name: fault, on: fault, field: level, equals: high, before: 200}]}
      """
    try await withHarness(namespaces: ["shop": shop]) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      for first in stride(from: 0, to: 500, by: 50) {
        let reports = (first..<first + 50).map { Sample.report($0, in: "shop", hasPayload: false, hasID: false) }
        _ = try await harness.client().report(contentsOf: reports)
      }
      try await harness.endDaemon(SIGKILL)
      try await harness.startDaemon()
      for level in ["low", "high"] {
        _ = try await harness.prismctl(
          "send", "--namespace", "shop", "--type", "fault", "--meta", #"{"level":"\#(level)"}"#)
      }
      try await harness.waitUntilSent(["shop"])
      #expect(try await harness.query("SELECT count(*) FROM report") == [["202"]])
      let status = try await harness.status()
      #expect(Harness.rows(status, "shop", "meta", "kept") == 300)
      #expect(status["namespaces"]?["shop"]?["triggers"]?["fault"]?["fired"]?.int == 1)
      let explained = try await harness.prismctl("explain", "shop")
      #expect(explained.output.contains("kept in the ring; trigger fault lets 200 go before"))
    }
  }

  @Test(
    "by default a question is answered within 60 s over a line of 300 ms, and one over its budget is refused with the number",
    .enabled(if: LongLine.isPermitted, LongLine.why))
  func question() async throws {
    let shop = "{url: URL, monitorList: [{type: sample, keep: ring}]}\n"
    try await NetworkPair.with(over: LongLine(delayMilliseconds: 150)) { pair in
      let ask = "ask: {allow: [sample], maxKByte: 64}\n"
      try await withHarness(across: pair, namespaces: ["shop": shop], extra: ask) { harness in
        let reports = (0..<2000).map { Sample.report($0, in: "shop", hasPayload: false, hasID: false) }
        _ = try await harness.client().report(contentsOf: reports)
        try await harness.ask("count", #"{"type":"sample"}"#)
        try await harness.ask("rows", #"{"type":"sample","rows":true}"#)
        let began = ContinuousClock.now
        var answers: [String: CommandAnswer] = [:]
        try await waitUntil("both questions have ended") {
          answers = try await harness.answers()
          return answers.count == 2 && answers.values.allSatisfy(\.state.isFinal)
        }
        #expect(ContinuousClock.now - began < .seconds(60))
        #expect(answers["count"]?.state == .done && answers["count"]?.result?["rows"] == 2000)
        let refused = try #require(answers["rows"])
        let message = refused.result?.string ?? ""
        #expect(refused.state == .refused && message.contains("would have 2000 reports of"), "\(message)")
        #expect(message.contains("may have 65536"))
        #expect(try await harness.query("SELECT count(*) FROM report WHERE type = 'sample'") == [["0"]])
      }
    }
  }
}
