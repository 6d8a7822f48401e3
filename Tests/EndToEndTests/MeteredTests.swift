import Foundation
import Glibc
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// A link that is no loopback.
@Suite(.enabled(if: NetworkPair.isPermitted, NetworkPair.why))
struct MeteredTests {
  private static let prism = """
    url: URL
    maxFlowMByte: 1
    meteredIntervalSecond: 0
    periodicTimerSecond: 1
    monitorList: [{type: sample, isUploadPayload: true}, {type: big, onlyWifi: true}]
    """

  @Test("on a metered network types with onlyWifi stay, and the flow ends at its limit")
  func flowIsKept() async throws {
    try await NetworkPair.with { pair in
      try await withHarness(
        across: pair, namespaces: ["shop": Self.prism], extra: #"network: {interfaces: {"*": metered}}"#
      ) { try await Self.expectFlowKept($0) }
    }
  }

  private static func expectFlowKept(_ harness: Harness) async throws {
    let client = harness.client()
    // 4 MiB that no compressor makes smaller, 64 KiB each.
    for number in 0..<64 {
      var random = SeededRandom(seed: UInt64(number))
      var report = Sample.report(number, in: "shop")
      report.payload = (0..<65_536).map { _ in UInt8.random(in: 0...255, using: &random) }
      _ = try await client.report(report)
      report.type = ReportType("big")!
      report.payload = nil
      _ = try await client.report(report)
    }
    let limit = 1_048_576
    // One more of these would pass the limit.
    let rowBytes = 65_536 + 4096
    try await waitUntil("the flow is used up") {
      let flow = try await harness.status()["namespaces"]?["shop"]?["flow"]
      return flow?["usedBytes"]?.int ?? 0 > limit - rowBytes
    }
    _ = try await harness.prismctl("flush", "shop")
    let status = try await harness.status()
    #expect(status["namespaces"]?["shop"]?["flow"]?["usedBytes"]?.int ?? .max <= limit)
    #expect(Harness.rows(status, "shop", "meta", "waiting") >= 64, "types with onlyWifi stay")
    #expect(Harness.rows(status, "shop", "payload", "waiting") > 0)
    let bytes = try await Programs.run(
      "env", harness.collectorCommand(["curl", "-s", "--unix-socket", harness.readerSocket, "http://prism/metrics"])
    ).lines
      .first { $0.hasPrefix("prism_collector_received_bytes_total ") }.flatMap { Int($0.split(separator: " ")[1]) }
    let received = try #require(bytes)
    #expect(received <= limit)
    #expect(try await harness.query("SELECT count(*) FROM report WHERE type = 'big'") == [["0"]])
    #expect(try await harness.prismctl("network").output.contains("metered"))
  }
}
